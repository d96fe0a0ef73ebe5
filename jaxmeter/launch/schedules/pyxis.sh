#!/usr/bin/env bash
# A nightly run of jaxmeter as a SLURM job, in containers of pyxis. docs/how_to/slurm.md has the recipe.
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
#SBATCH --signal=TERM@120
#SBATCH --output=${name}-%j.log
${sbatch} --gres=gpu:1
# Line by line: nightly runs do not overlap; the job has the node and its memory alone; a regression is not measured
# again until it passes; two minutes before the time limit, the harness is signalled and keeps what it has; the number
# of GPUs (## turns a line off).
set -euo pipefail

image="${image}" # by digest: a tag may name another image tomorrow
store_image="${store_image}"
results=$PWD/jaxmeter-results # where you call sbatch; a nightly run that broke off leaves its rest here, too
reports=$PWD/jaxmeter-reports
night=$results/.night
credentials=$HOME/.config/jaxmeter/store.env # lines NAME=value, readable by you alone
mkdir -p "$results" "$reports"

step() {
    srun --container-mounts="$results:/work/results,$reports:/work/reports" --container-workdir=/work \
        --no-container-mount-home --no-container-remap-root --no-container-entrypoint "$@"
}

# A step with the store: it has the credentials. In a shell of its own, so that no other step has them.
with_store() (
    if [[ -r $credentials ]]; then
        set -a
        # shellcheck source=/dev/null
        source "$credentials"
        set +a
    fi
    export JAXMETER_CACHE=/work/results/.cache
    step --export=ALL --container-image="$store_image" python3 -m jaxmeter night "$@"
)

# A step that measures what a file says, if it exists. Exit code 3, a run that is not complete, does not stop the job.
measure() {
    [[ -f $night/$1 ]] || return 0
    local code=0
    step --export=HOME,NVIDIA_VISIBLE_DEVICES=all,NVIDIA_DRIVER_CAPABILITIES=all --container-image="$image" \
        python3 -m jaxmeter run "@/work/results/.night/$1" || code=$?
    ((code == 3)) || return "$code"
}

with_store begin ${command}
code=0
measure measure || code=$?
if ((code == 2)) && grep -q -x -e --resume "$night/measure"; then
    # An interrupted run cannot continue, for example after a change of the image: a new nightly run begins.
    with_store begin --restart ${command}
    measure measure
elif ((code)); then
    exit "$code"
fi
with_store suspects --out /work/results
measure confirm-last
measure confirm-pinned
with_store conclude --out /work/results
