"""How sellers of machines write their own names; price lists have identifiers."""

from collections.abc import Mapping

_NAMES: Mapping[str, str] = {
    "aws": "AWS",
    "azure": "Azure",
    "cloudrift": "CloudRift",
    "cudo": "Cudo Compute",
    "do": "DigitalOcean",
    "fluidstack": "Fluidstack",
    "gcp": "Google Cloud",
    "hyperbolic": "Hyperbolic",
    "hyperstack": "Hyperstack",
    "ibm": "IBM Cloud",
    "in-house": "in-house machines",
    "lambda": "Lambda",
    "mithril": "Mithril",
    "nebius": "Nebius",
    "oci": "Oracle Cloud",
    "ovhcloud": "OVHcloud",
    "own": "your machines",
    "paperspace": "Paperspace",
    "primeintellect": "Prime Intellect",
    "runpod": "RunPod",
    "scaleway": "Scaleway",
    "scp": "Samsung Cloud",
    "seeweb": "Seeweb",
    "shadeform": "Shadeform",
    "vast": "Vast.ai",
    "verda": "Verda",
    "yotta": "Yotta",
}


def seller_name(cloud: str) -> str:
    """RunPod for runpod; an unknown one as it is."""
    return _NAMES.get(cloud, cloud)
