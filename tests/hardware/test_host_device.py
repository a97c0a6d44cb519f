import platform

import pytest

from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.host_device import detect_host, from_linux, from_sysctl

MEMINFO = "MemTotal:       16384000 kB\nMemFree: 1 kB\n"


def cpuinfo(flags: str, cores: int = 4, threads: int = 1, megahertz: float = 2500.0) -> str:
    blocks = [
        f"processor\t: {core * threads + thread}\nmodel name\t: Test CPU\ncpu MHz\t\t: {megahertz}\n"
        f"physical id\t: 0\ncore id\t\t: {core}\nflags\t\t: {flags}\n"
        for core in range(cores)
        for thread in range(threads)
    ]
    return "\n".join(blocks)


# by hand: 4 cores × 2.5 GHz × 2 units × lanes × 2 (fused)
@pytest.mark.parametrize(
    ("flags", "flops_per_second"),
    [
        ("sse2 avx avx2 fma avx512f", 4 * 2.5e9 * 2 * 16 * 2),
        ("sse2 avx avx2 fma", 4 * 2.5e9 * 2 * 8 * 2),
        ("sse2 avx", 4 * 2.5e9 * 2 * 8),
        ("sse2", 4 * 2.5e9 * 2 * 4),
    ],
)
def test_the_peak_is_cores_times_clock_times_lanes(flags: str, flops_per_second: float) -> None:
    host = from_linux(cpuinfo(flags), MEMINFO, usable_cpus=4)
    assert host.peak("fp32") == pytest.approx(flops_per_second)
    assert host.peak("bf16") == host.peak("fp32")
    assert host.memory_bytes == 16384000 * 1024


def test_two_threads_of_a_core_are_one_core() -> None:
    host = from_linux(cpuinfo("avx2 fma", cores=4, threads=2), MEMINFO, usable_cpus=8)
    assert host.compute_units == 4


def test_only_the_cores_this_process_may_use_count() -> None:
    assert from_linux(cpuinfo("avx2 fma", cores=64), MEMINFO, usable_cpus=3).compute_units == 3


def test_the_highest_clock_the_kernel_tells_counts() -> None:
    assert from_linux(cpuinfo("avx2 fma"), MEMINFO, usable_cpus=4, clock_hertz=4e9).clock_hertz == 4e9


def test_an_assumed_bandwidth_is_never_called_verified() -> None:
    host = from_linux(cpuinfo("avx2 fma", cores=64), MEMINFO, usable_cpus=64)
    assert host.memory_bytes_per_second == 200e9
    assert not host.verified and "assumed" in host.source


def test_an_arm_server_without_a_told_clock_is_described() -> None:
    text = "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n\nprocessor\t: 1\nFeatures\t: fp asimd\n"
    host = from_linux(text, MEMINFO, usable_cpus=2)
    assert host.peak("fp32") == pytest.approx(2 * 3.2e9 * 2 * 4 * 2)


def test_a_mac_is_described_by_sysctl() -> None:
    values = {"machdep.cpu.brand_string": "Apple M2", "hw.physicalcpu": "8", "hw.memsize": str(16 * 2**30)}
    host = from_sysctl(values)
    assert host.name == "host CPU (Apple M2, 8 cores)"
    assert host.peak("fp32") == pytest.approx(8 * 3.2e9 * 2 * 4 * 2)


@pytest.mark.parametrize(
    ("cpu", "memory", "message"),
    [("", MEMINFO, "/proc/cpuinfo lists no processor"), (cpuinfo("avx2"), "", "/proc/meminfo has no MemTotal")],
)
def test_what_cannot_be_read_is_said(cpu: str, memory: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        from_linux(cpu, memory, usable_cpus=1)


def test_a_mac_that_tells_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match=r"sysctl gives no hw.physicalcpu"):
        from_sysctl({})


def test_another_system_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Plan9")
    detect_host.cache.clear()
    with pytest.raises(BadInput, match="on Plan9; name a device instead"):
        detect_host()
    detect_host.cache.clear()


@pytest.mark.skipif(platform.system() not in ("Linux", "Darwin"), reason="hosts are described on Linux and macOS")
@pytest.mark.parametrize("name", ["cpu", "HOST", "local"])
def test_this_machine_has_three_names(name: str) -> None:
    host = find_device(name)
    assert host is detect_host()
    assert host.kind == "cpu" and host.peak("fp32") > 1e9
