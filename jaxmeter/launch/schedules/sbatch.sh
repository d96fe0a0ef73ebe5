#!/usr/bin/env bash
# A night of jaxmeter as a SLURM job, in a folder that the node sees too; docs/operations.md has the recipe.
#   sbatch THIS_FILE                   tonight's, now; partition, account and node of your site go before the file
#   ${at} sbatch THIS_FILE             every night, in `crontab -e` of a login node, which goes by local time
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
${gres}
# Line by line: nights do not overlap; nobody else is on the node, and all of its memory is ours; a regression is not
# measured again until it passes; two minutes before the time is over the night is told, and keeps what it has.
set -u
cd ${folder} || exit 2
set -m # the night is a group of its own, which can be interrupted as by Ctrl-C

credentials=$HOME/.config/jaxmeter/store.env # lines NAME=value, readable by you alone
if [[ -r $credentials ]]; then
    set -a
    # shellcheck source=/dev/null
    source "$credentials"
    set +a
fi

# scancel tells all processes to end. The first would do so at once; the harness hears it too, and keeps what it has.
trap '' TERM
${command} &
night=$!
trap 'kill -INT -- "-$night"' USR1

code=0
wait "$night" || code=$?
while kill -0 "$night" 2>/dev/null; do # a signal has ended the waiting, and not the night
    code=0
    wait "$night" || code=$?
done
exit "$code"
