"""Read drawings back as XML."""

import xml.etree.ElementTree as ET

from pallas_rungs.figures import SVG


def parsed(svg: SVG) -> ET.Element:
    return ET.fromstring(str(svg))


def words(svg: SVG) -> list[str]:
    """Every line of text in a drawing, in order."""
    return ["".join(e.itertext()) for e in parsed(svg).iter("text")]


def fills(svg: SVG) -> list[str]:
    return [e.get("fill", "") for e in parsed(svg).iter("rect")]
