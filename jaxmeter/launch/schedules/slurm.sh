#!/usr/bin/env bash
# A nightly run of jaxmeter as a SLURM job, in a folder that the node sees too. docs/how_to/slurm.md has the recipe.
#   sbatch THIS_FILE              one nightly run, now; put partition, account and node of your site before the file
#   ${at} sbatch THIS_FILE    every night, in `crontab -e` of a login node; cron uses local time
#SBATCH --job-name=${name}
#SBATCH --dependency=singleton
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=06:00:00
#SBATCH --no-requeue
#SBATCH --signal=B:USR1@120
#SBATCH --output=${name}-%j.log
${sbatch} --gres=gpu:1
# Line by line: nightly runs do not overlap; the job has the node and its memory alone; a regression is not measured
# again until it passes; two minutes before the time limit, the nightly run is signalled and keeps what it has; the
# number of GPUs (## turns a line off).
set -u
cd ${folder} || exit 2
set -m # the nightly run is a group of its own, which can be interrupted as by Ctrl-C

credentials=$HOME/.config/jaxmeter/store.env # lines NAME=value, readable by you alone
if [[ -r $credentials ]]; then
    set -a
    # shellcheck source=/dev/null
    source "$credentials"
    set +a
fi

# scancel signals all processes. nox would end at once; the harness is signalled, too, and keeps what it has.
trap '' TERM
${command} &
night=$!
trap 'kill -INT -- "-$night"' USR1

code=0
wait "$night" || code=$?
while kill -0 "$night" 2>/dev/null; do # a signal has ended the waiting, and not the nightly run
    code=0
    wait "$night" || code=$?
done
exit "$code"
