#!/usr/bin/env bash
# A night of jaxmeter as a SLURM job, in containers that pyxis starts; docs/operations.md has the recipe.
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
#SBATCH --signal=TERM@120
#SBATCH --output=${name}-%j.log
${gres}
# Line by line: nights do not overlap; nobody else is on the node, and all of its memory is ours; a regression is not
# measured again until it passes; two minutes before the time is over the harness is told, and keeps what it has.
set -euo pipefail

results=$PWD/jaxmeter-results # where sbatch is called; what is left of a night that broke off is there, too
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
    step --export=ALL --container-image="${store_image}" python3 -m jaxmeter night "$@"
)

# A step that measures what a file says, if it is there. Exit code 3, a run that is not complete, does not stop the night.
measure() {
    [[ -f $night/$1 ]] || return 0
    local code=0
    step --export=HOME,NVIDIA_VISIBLE_DEVICES=all,NVIDIA_DRIVER_CAPABILITIES=all --container-image="${image}" \
        python3 -m jaxmeter run "@/work/results/.night/$1" || code=$?
    ((code == 3)) || return "$code"
}

with_store begin ${begin}
code=0
measure measure || code=$?
if ((code == 2)) && grep -q -x -e --resume "$night/measure"; then
    # What broke off before cannot be gone on with, as where the image has changed: a new night begins.
    with_store begin --restart ${begin}
    measure measure
elif ((code)); then
    exit "$code"
fi
with_store suspects --out /work/results
measure confirm-last
measure confirm-pinned
with_store conclude --out /work/results
