"""Types of arrays as the source writes them: `Float[Array, 'row column']`, not the union that they are at run time."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import inspect
from sphinx.util.inspect import stringify_signature

HOME = re.compile(r"~?jaxtyping\.")  # ~: as autodoc marks a name to be cut
JAX, NUMPY = r"~?(?:(?:jaxlib\._jax|jax)\.)?Array", r"~?(?:numpy\.)?ndarray"
EITHER = re.compile(rf"(?P<kind>\w+)\[{JAX}, (?P<shape>'[^']*')\] \| (?P=kind)\[{NUMPY}, (?P=shape)\]")
KEY = re.compile(rf"Key\[{JAX}, ''\](?: \| UInt32\[{JAX}, '[24]'\])+")
PLAIN = re.compile(rf"{JAX} \| {NUMPY}|{JAX}")
LIKE = re.compile(r"[~\w.]*_Buffer\b.*?_NestedSequence\[[^\[\]]*\bcomplex\b[^\[\]]*\]")

# What autodoc makes of a class whose base stands in for a package that is not there.
NO_SIGNATURE = re.compile(r"\(\*args: [~\w.]*Any, \*\*kwargs: [~\w.]*Any\)")


def shortened(text: str) -> str:
    """A signature with every array's type written once."""
    text = EITHER.sub(r"\g<kind>[Array, \g<shape>]", HOME.sub("", text))
    return PLAIN.sub("Array", KEY.sub("PRNGKeyArray", LIKE.sub("ArrayLike", text)))


def of_signature(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Arguments and result of a function, as autodoc asks for them."""
    if what == "class" and NO_SIGNATURE.fullmatch(signature or ""):
        signature = stringify_signature(
            inspect.signature(thing.__init__, bound_method=True), unqualified_typehints=True
        )
    # The default of a dataclass' field that is made anew for each: Sphinx cannot read what Python shows for it.
    return signature and shortened(signature.replace("<factory>", "...")), returned and shortened(returned)


def of_property(app: Sphinx, domain: str, kind: str, content: addnodes.desc_content) -> None:
    """The type of a property or an attribute, which autodoc does not ask about."""
    if kind not in ("property", "attribute") or content.parent is None:
        return
    for annotation in content.parent.findall(addnodes.desc_annotation):
        text = "".join(str(part) for part in annotation.findall(nodes.Text) if not _spelled_out(part))
        if shortened(text) != text:
            annotation.children = []
            annotation += nodes.Text(shortened(text))


def _spelled_out(part: nodes.Text) -> bool:
    """Whether it is a name's long form, which stands beside its short one until links are made."""
    return isinstance(part.parent, addnodes.pending_xref_condition) and part.parent["condition"] == "*"


def setup(app: Sphinx) -> dict[str, bool]:
    """Have every signature shortened."""
    app.connect("autodoc-process-signature", of_signature)
    app.connect("object-description-transform", of_property)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
