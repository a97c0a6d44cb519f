from collections import Counter

from studies.memory.detectors import Peak, section


def test_the_section_has_sources_worst_first_and_the_farthest_rows() -> None:
    peaks = [
        Peak("detectron2", "near", "fp32", 4e9, 3.8e9, 4e9),
        Peak("mmdetection_v3", "far|off", "fp32", 4e9, 2e9, 3e9),
    ]
    text = "\n".join(section(peaks, Counter({"detectron2": 3})))
    assert "| detectron2 | 1 | 3 | 5.0% | 5.0% | -5.0% | 0.0% | 0.0% |" in text
    assert text.index("| mmdetection_v3 | 1 | 0 | 50.0%") < text.index("| detectron2 | 1 | 3 |")
    assert "| mmdetection_v3 | far off | fp32 | 4.00 GB | 2.00 GB | -50% |" in text
