"""Tell the notebook kernels that this is the book: explorers come out as plain HTML with every frame inside."""

import os


def setup(app):
    os.environ["COTUNE_STATIC"] = "1"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
