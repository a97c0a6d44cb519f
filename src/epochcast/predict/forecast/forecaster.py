"""One job at one place: the forecast. Every verb asks here, so that all of them answer alike."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from epochcast.base.notes import Importance, Note
from epochcast.describe.capture.model import COMPILED_NOTE, Model
from epochcast.describe.capture.model_fingerprint import fingerprint
from epochcast.describe.graph.adapters import NoSuchLayer, adapted_layers
from epochcast.describe.graph.precision import SINGLE
from epochcast.describe.graph.quantised_base import FOUR
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput, InvalidLayout
from epochcast.hardware.default_network import usual_network
from epochcast.hardware.measured_devices import measured_how
from epochcast.hardware.topology import largest_box
from epochcast.predict.cost.launch import assumed_host, launch_seconds
from epochcast.predict.forecast.assumed import host_of
from epochcast.predict.forecast.attention_kernels import attention_kernels, attention_windows
from epochcast.predict.forecast.device_doubts import device_doubts
from epochcast.predict.forecast.epochs import epoch_seconds, steps_per_epoch, total_seconds
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecast_details import Details
from epochcast.predict.forecast.framework import framework_step, setting_of
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.job_data import (
    IMAGE,
    TEXT,
    VIDEO,
    Data,
    data_of,
    is_packed,
    length_notes,
    steps_samples,
    token_count,
)
from epochcast.predict.forecast.job_defaults import Settled, plain_options, settled
from epochcast.predict.forecast.job_doubts import job_doubts
from epochcast.predict.forecast.loader_step import CountedLoader, LoadedStep, loaded_step
from epochcast.predict.forecast.measured_step import (
    AFTER_HIGH,
    AFTER_LOW,
    GivenStep,
    scaled_host,
    solved_factor,
)
from epochcast.predict.forecast.mixed_precision import has_casts, is_surely_slower, no_slower
from epochcast.predict.forecast.offload import check_offload, host_bytes, with_offload, with_paging
from epochcast.predict.forecast.placement import Placement, placed
from epochcast.predict.forecast.rank_memory import job_memory
from epochcast.predict.forecast.remedies import UnfitJob
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.single_precision import run_precision
from epochcast.predict.forecast.step import StepForecast
from epochcast.predict.forecast.step_margins import with_margin
from epochcast.predict.forecast.uncertainty import uncertain_memory, uncertain_parts
from epochcast.predict.forecast.utilisation import model_flops, products_peak, utilisation
from epochcast.predict.memory.peak import PeakMemory
from epochcast.units import show_bytes, show_seconds


def forecast_job(
    job: Job,
    placement: Placement,
    session: Session | None = None,
    *,
    step_only: bool = False,
    loader: CountedLoader = CountedLoader.USUAL,
) -> Forecast:
    """How long a job takes at a place, what it needs and what it costs. `step_only` leaves memory and epochs out;
    `loader` is the one that counts where nobody said its speed.

    Where texts differ in length, time is that of batches as they come, memory that of one with the longest text.
    """
    job.check_is_step()
    session = session or Session()
    if placement.measured_step is not None:
        placement, session = _as_measured(job, placement, placement.measured_step, session)
        loader = CountedLoader.NONE  # a measured step has waited for its data
    with _said_of_lengths(job):
        own = settled(job, placement.device, session)
    job = own.job
    batch = batch_per_pass(job, placement)
    longest = session.model(job)
    as_it_comes = job.at_length(batch)
    model = longest if as_it_comes is job else session.model(as_it_comes)
    recipe = as_it_comes.recipe(batch, placement.device)
    with _said_of_lengths(job):
        trace = session.trace(model, recipe)
    precision = job.precision if trace.recipe.precision == recipe.precision else trace.recipe.precision
    check_offload(trace.recipe, placement)
    data = data_of(job, trace)
    if job.steps_per_epoch is not None:
        data = replace(data, samples=steps_samples(job, placement.replicas))
    loaded = _step(as_it_comes, placement, model, trace, session, loader)
    step = loaded.step
    memory = None
    if not step_only:
        memory = job_memory(job, placement, longest, session.trace(longest, trace.recipe), session)
        step = with_paging(step, memory.paged_bytes, placement.device)
    on_host = host_bytes(trace, placement) + (memory.paged_bytes * placement.ranks_per_node if memory else 0)
    per_gpu = batch * job.accumulate
    warnings = (
        *_model_notes(trace),
        *_stored_notes(job, precision),
        *session.hints(placement.device, trace.recipe.precision_rules.math),
        *loaded.notes,
        *length_notes(job, batch, data, trace),
        *_changed(job, model),
        *job_doubts(job, placement, trace, step, loader),
        *_doubts(placement, trace, step),
        *_host_notes(placement, on_host, is_paged=bool(memory and memory.paged_bytes)),
    )
    epoch = None
    if memory is not None:
        epoch = epoch_seconds(
            job,
            data,
            step,
            global_batch=per_gpu * placement.replicas,
            validation_batch=trace.batch * placement.replicas,
            saved_bytes=memory.saved_bytes + on_host // placement.ranks_per_node,
        )
    return Forecast(
        model=trace.name,
        device=placement.device.name,
        step_seconds=step.seconds,
        gpus=placement.gpus,
        nodes=placement.nodes,
        link_assumed=placement.link_assumed,
        strategy=placement.strategy.name,
        replicas=placement.replicas,
        precision=precision,
        weights=trace.recipe.precision_rules.weights.name,
        offload=job.offload,
        optimizer=job.optimizer,
        mode=job.mode,
        framework=job.framework,
        attention=attention_kernels(trace, placement.device),
        attention_window=attention_windows(trace),
        compile=job.compile,
        eager_loss=job.eager_loss,
        expert_capacity=job.expert_capacity,
        expert_imbalance=job.expert_imbalance,
        kernels=trace.recipe.kernels,
        batch_per_gpu=per_gpu,
        global_batch=per_gpu * placement.replicas,
        accumulate=job.accumulate,
        augment=job.augment,
        checkpointing=_checkpointing(trace),
        channels_last=bool(setting_of(job, placement.device).channels_last) and data.fed in (IMAGE, VIDEO),
        lora=trace.recipe.lora,
        adapter=trace.recipe.adapter,
        lora_targets=adapted_layers(p.layer for p in trace.parameters if p.trainable),
        four_bit=trace.recipe.base_bits == FOUR,
        quantize=trace.recipe.quantize,
        dataset=job.dataset,
        fed=data.fed,
        samples=data.samples,
        epochs=data.epochs,
        tokens_per_sample=data.tokens_per_sample,
        sequence_length=trace.inputs[0].shape[1] if data.tokens_per_sample else None,
        contents=trace.contents or _given_shape(job, data),
        longest_sequence=None if job.length_distribution is None else job.length_distribution.most,
        packing=is_packed(job),
        steps_per_epoch=steps_per_epoch(data, per_gpu * placement.replicas),
        step_parts=replace(step.parts, bubble=0.0),
        bubble_seconds=step.parts.bubble,
        epoch_seconds=epoch,
        total_seconds=total_seconds(data, epoch),
        **_memory_numbers(memory),
        memory_bytes=placement.device.memory_bytes,
        host_bytes=on_host,
        dollars_per_hour=placement.dollars_per_hour,
        price_source=placement.price_source,
        flops_per_sample=trace.flops["matrix"] / trace.batch,
        mfu=None if step_only else _utilisation(job, placement, model, trace, step, session),
        parameters=trace.parameter_counts[0],
        trainable_parameters=trace.parameter_counts[1],
        answered_by=dict(step.answered_by),
        uncertainty=uncertain_parts(step.variances, is_host_measured=placement.is_host_measured),
        peak_uncertainty=() if memory is None else uncertain_memory(memory.spread.variances, job.assumed),
        device_measured=measured_how(placement.device),
        opaque_ops=trace.opaque,
        assumed=_assumed(own, precision, data, trace, loaded),
        warnings=warnings,
        _details=lambda: Details(
            job,
            placement,
            longest,
            trace,
            step,
            memory,
            UnfitJob(job, placement, batch, data.fed, step.seconds.mid / per_gpu / placement.replicas, session, _asked),
        ),
    )


def _asked(job: Job, placement: Placement, session: Session) -> Forecast:
    """The step of a changed job; its memory is known to who asks."""
    return forecast_job(job, placement, session, step_only=True)


def _as_measured(job: Job, placement: Placement, measured: GivenStep, session: Session) -> tuple[Placement, Session]:
    """The place and the session in which the job takes as long on one GPU as was measured: with other kernels, or with
    another host where the forecast step waits for its launches.
    """
    passes = job.accumulate if measured.batch % job.accumulate == 0 else 1
    one_gpu = replace(job, batch=measured.batch // passes, global_batch=None, accumulate=passes)
    alone = replace(placed(placement.device), host=placement.host)

    def seconds(on: Placement, by: Session) -> float:
        return forecast_job(one_gpu, on, by, step_only=True, loader=CountedLoader.NONE).step_seconds.mid

    expected = forecast_job(one_gpu, alone, session, step_only=True, loader=CountedLoader.NONE)
    placement = replace(placement, measured_step=None)
    is_launch_bound = expected.step_parts is not None and expected.step_parts.host > expected.step_seconds.mid / 2
    launch = launch_seconds(placement.device) if placement.host is None else placement.host.launch_seconds.mid
    if is_launch_bound:
        factor = solved_factor(
            lambda f: seconds(replace(alone, host=scaled_host(alone.host, launch, f)), session), measured.seconds
        )
        if factor is not None:
            return replace(placement, host=scaled_host(placement.host, launch, factor)), session
    factor = solved_factor(lambda f: seconds(alone, session.scaled(f)), measured.seconds)
    if factor is None:
        expects = f"the forecast is {show_seconds(expected.step_seconds.mid)}"
        raise BadInput(f"`step_seconds`: {measured.text} cannot be a step of this job on one GPU: {expects}")
    return placement, session.scaled(factor, (AFTER_LOW, AFTER_HIGH))


def _checkpointing(trace: Trace) -> str:
    """As the command line takes it."""
    checkpointing = trace.recipe.checkpointing
    return checkpointing if isinstance(checkpointing, str) else "full" if checkpointing else "none"


def _assumed(own: Settled, precision: str, data: Data, trace: Trace, loaded: LoadedStep) -> dict[str, Any]:
    """What nobody said, in plain types: also the length of texts, where it is the network's own."""
    assumed = plain_options(own.assumed)
    if assumed.get("precision") != precision and "weights" not in assumed:
        assumed.pop("precision", None)  # the weights of a live model decide it
    if data.fed == TEXT and isinstance(own.job.model, str) and own.job.longest_shape is None:
        assumed["input_shape"] = [token_count(trace)]
    if loaded.assumed_workers is not None:
        assumed["workers"] = loaded.assumed_workers
    return assumed


def _utilisation(
    job: Job, placement: Placement, model: Model, trace: Trace, step: StepForecast, session: Session
) -> float:
    """MFU; what checkpointing computes again is no work of the model."""
    recipe = trace.recipe
    plain = session.trace(model, replace(recipe, checkpointing=False)) if recipe.checkpointing else trace
    passes = job.accumulate * placement.replicas
    peak = products_peak(plain, placement.device)
    return utilisation(model_flops(plain), passes, step.seconds.mid, placement.gpus, peak)


def has_room(job: Job, placement: Placement, session: Session) -> bool:
    """Whether a job fits in the memory of a place, found out before anything is timed."""
    job = settled(job, placement.device, session).job
    longest = session.model(job)
    batch = batch_per_pass(job, placement)
    recipe = job.at_length(batch).recipe(batch, placement.device)
    return bool(job_memory(job, placement, longest, session.trace(longest, recipe), session).fits)


def batch_per_pass(job: Job, placement: Placement) -> int:
    """Samples of one pass of a GPU, before augmentation: the job's own, or its share of the global batch."""
    if job.batch is not None:
        return job.batch
    if job.global_batch is None:
        raise BadInput("a forecast needs a batch: batch (of each GPU) or global_batch (of all GPUs)")
    passes = placement.replicas * job.accumulate
    if job.global_batch % passes:
        accumulated = f" and {job.accumulate} passes" if job.accumulate > 1 else ""
        raise InvalidLayout(
            f"a batch of {job.global_batch} does not divide over {placement.replicas} replicas{accumulated}"
        )
    return job.global_batch // passes


def _hosted(model: Model, placement: Placement) -> Placement:
    """With the host that the model is usually trained from, where nobody named one."""
    host_class = getattr(model, "host_class", None)
    if host_class is None or placement.host is not None or placement.device.launch_seconds is not None:
        return placement
    return replace(placement, host=assumed_host(host_class))


def _step(
    job: Job, placement: Placement, model: Model, trace: Trace, session: Session, loader: CountedLoader
) -> LoadedStep:
    """One step with what it waits for data."""
    measured = session.measured_device(placement.device)
    own = _hosted(model, placement if measured == placement.device else placement.with_device(measured))
    step = with_margin(_fed_step(job, own, model, trace, session), trace, own, setting_of(job, own.device))
    return loaded_step(job, placement, trace, step, loader)


def _fed_step(job: Job, placement: Placement, model: Model, trace: Trace, session: Session) -> StepForecast:
    """One step that never waits for data; in mixed precision never slower than in float32 (`mixed`)."""
    costing = session.cost_model(placement.device)

    def step_of(own: Job, run: Trace) -> StepForecast:
        step = session.steps.get(
            (
                *(model, run.recipe, placement.device, placement.group, placement.strategy, placement.host),
                *(setting_of(own, placement.device), own.framework_version, own.hook_seconds),
            ),
            lambda: framework_step(own, run, placement, costing, with_layers=session.with_layer_steps),
        )
        return with_offload(step, run, placement)

    step = step_of(job, trace)
    if placement.is_host_measured or not has_casts(trace, placement.device):  # with its casts
        return step
    in_single = session.trace(model, replace(trace.recipe, precision=run_precision(SINGLE, job, placement.device)))
    if is_surely_slower(in_single, placement, costing, setting_of(job, placement.device), step):
        return step
    return no_slower(step, step_of(replace(job, precision=SINGLE, weights=None), in_single))


def _memory_numbers(memory: PeakMemory | None) -> dict[str, Any]:
    if memory is None:
        return {}
    return {
        "peak_bytes": memory.bytes,
        "peak_breakdown": dict(memory.breakdown),
        "peak_op": memory.peak_op,
        "allocated_bytes": memory.allocated_bytes,
        "reserved_bytes": memory.reserved_bytes,
        "memory_verdict": memory.verdict,
        "fits_probability": memory.fits_probability,
    }


def _given_shape(job: Job, data: Data) -> str:
    """The size of what is no text, where the job says it."""
    return "" if job.input_shape is None or data.fed == TEXT else f"{'x'.join(map(str, job.input_shape))} input"


def _changed(job: Job, model: Model) -> tuple[str, ...]:
    """Whether a written job still means the same model."""
    if job.fingerprint is None or fingerprint(model) == job.fingerprint:
        return ()
    text = f"{job.model} has other parameters than when this job was saved: it is a different model now."
    return (Note(text, Importance.NOT_AS_ASKED),)


def _model_notes(trace: Trace) -> tuple[str, ...]:
    """What its front end says of a model; that it is compiled is no news where the job says so."""
    is_compiled = trace.recipe.is_compiled
    return tuple(note for note in trace.notes if note != COMPILED_NOTE or not is_compiled)


def _stored_notes(job: Job, precision: str) -> Iterator[Note]:
    """Whether the weights of a live model decide the precision."""
    if precision != job.precision:
        text = f"The model's weights are {precision}, so it runs in {precision}, not {job.precision}."
        yield Note(text, Importance.NOT_AS_ASKED)


@contextmanager
def _said_of_lengths(job: Job) -> Iterator[None]:
    """A model that takes no sequence of tokens is refused by the option that asked for one."""
    try:
        yield
    except BadInput as problem:
        if job.lengths is None or isinstance(problem, NoSuchLayer):
            raise
        raise BadInput(f"`lengths` is for language models, which take one number of tokens: {problem}") from problem


def _host_notes(placement: Placement, needed_bytes: int, *, is_paged: bool) -> Iterator[Note]:
    """What a node needs of its host for what is not on its GPUs, and whether the known node has it."""
    if not needed_bytes:
        return
    host, _ = host_of(placement, cpus=None, memory_bytes=None)
    what = "The optimizer state does not fit in GPU memory and is paged to the host" if is_paged else "Offloading"
    needs = f"{what}: each node needs {show_bytes(needed_bytes)} of host memory"
    if needed_bytes > host.memory_bytes:
        yield Note(f"{needs}, the usual one has {show_bytes(host.memory_bytes)}.", Importance.NOT_AS_ASKED)
    else:
        yield Note(f"{needs}.")


def _doubts(placement: Placement, trace: Trace, step: StepForecast) -> Iterator[str]:
    """What one should know before believing the numbers."""
    device = placement.device
    if trace.recipe.sequence_parallel and not placement.strategy.splits_products:
        text = "`sequence_parallel` has no effect without tensor parallelism: use a strategy with tp."
        yield Note(text, Importance.NOT_AS_ASKED)
    yield from placement.strategy.notes(trace)
    if step.parts.bubble:
        share = step.parts.bubble / step.seconds.mid
        yield Note(f"Pipeline bubbles take {share:.0%} of the step.", Importance.LIMIT)
    if placement.nodes == 1 and placement.topology is None and placement.gpus > largest_box(device.name):
        text = f"{placement.gpus} GPUs are assumed to be in one node, and no known node has so many: set `nodes`."
        yield Note(text, Importance.NOT_AS_ASKED)
    if placement.link_assumed is not None:
        what = usual_network(device, placement.gpus, placement.nodes).description
        yield Note(f"No `link` given: assuming {placement.link_assumed} between nodes, the network of {what}.")
    if trace.recipe.compile == "vendor":
        text = "compile=vendor counts no time for elementwise operators, as in vendors' benchmark submissions."
        yield Note(text, Importance.EVIDENCE)
    if trace.opaque:
        kinds = "1 unknown operator is" if len(trace.opaque) == 1 else f"{len(trace.opaque)} unknown operators are"
        yield Note(f"{kinds} estimated by the bytes moved.", Importance.EVIDENCE)
    yield from device_doubts(device, step.answered_by, is_calibrated=step.costs.is_calibrated)
