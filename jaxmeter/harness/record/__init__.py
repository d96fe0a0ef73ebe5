"""What a run leaves on disk, and what is computed from it: all that reporting may import. No jax."""

from jaxmeter.harness.record.cases import (
    AS_GIVEN,
    LOCK_STEP,
    NATIVE,
    REPLAY,
    Answer,
    Artifact,
    CaseRecord,
    Cost,
    Figure,
    Param,
    PlannedCase,
    PlannedVariant,
    Published,
    Replay,
    Reported,
    VariantRecord,
)
from jaxmeter.harness.record.environment import Environment
from jaxmeter.harness.record.files import (
    CaseFolder,
    RecordError,
    RunFolder,
    UnreadableError,
    make_run_id,
    now,
    read_json,
    write_bytes,
    write_json,
)
from jaxmeter.harness.record.outcomes import (
    INCOMPLETE,
    Buffer,
    CacheStateCall,
    CachingDetails,
    CompilationDetails,
    Conditioning,
    Correctness,
    Details,
    MemoryDetails,
    Number,
    NumericsDetails,
    Outcome,
    Status,
    TimingDetails,
    TraceDetails,
    Trap,
)
from jaxmeter.harness.record.processes import Block, CalibrationLoop, DeviceState, Load, ProcessRecord, VariantSamples
from jaxmeter.harness.record.runs import (
    SCHEMA_VERSION,
    Manifest,
    ProcessWarning,
    RunRecord,
    Stop,
    StopReason,
    json_schema,
    read_manifest,
    read_run,
)
from jaxmeter.harness.record.settings import OtherEnvironment, Settings
