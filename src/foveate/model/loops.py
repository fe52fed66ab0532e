"""Loops compiled by Numba as parts of compiled JAX functions on a CPU.

XLA calls C functions through its foreign function interface, and a Numba `cfunc` is one: no Python runs when it is
called, so threads do not wait for each other. All that is to be done is to find the arrays in the frame that XLA hands
over, whose layout is part of the interface (`xla/ffi/api/c_api.h`, which jaxlib ships).
"""
# Numba compiles these functions; what it adds to arguments Python's types do not know.
# pyright: reportCallIssue=false, reportPrivateImportUsage=false

from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic

# Where things are in the interface's structures, in bytes; addresses have 64 bits.
FRAME_EXTENSION, FRAME_ARGUMENTS, FRAME_RESULTS = 8, 72, 112
BUFFER_NUMBERS, BUFFER_SIZES = 24, 40
EXTENSION_TYPE, EXTENSION_METADATA = 8, 24
METADATA_MAJOR, METADATA_MINOR = 24, 28

# When a function is registered XLA asks, by an extension of this type, of which version of the interface it is.
METADATA, MAJOR, MINOR = 1, 0, 1

SIGNATURE = types.int64(types.voidptr)  # the address of a frame; of an error, 0 if there is none


@intrinsic
def _pointer(_, address):
    def codegen(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), codegen


@intrinsic
def _address(_, pointer):
    def codegen(context, builder, signature, arguments):
        return builder.ptrtoint(arguments[0], ir.IntType(64))

    return types.int64(types.voidptr), codegen


@njit(inline="always")
def _word(address):
    return carray(_pointer(address), 1, types.int64)


@njit(inline="always")
def _half_word(address):
    return carray(_pointer(address), 1, types.int32)


@njit
def asks_for_version(frame):
    """Whether this call is but the question of which version of the interface the function is, which is answered."""
    extension = _word(_address(frame) + FRAME_EXTENSION)[0]
    if extension == 0 or _half_word(extension + EXTENSION_TYPE)[0] != METADATA:
        return False
    metadata = _word(extension + EXTENSION_METADATA)[0]
    major, minor = _half_word(metadata + METADATA_MAJOR), _half_word(metadata + METADATA_MINOR)
    major[0], minor[0] = MAJOR, MINOR
    return True


@njit(inline="always")
def _buffer(buffer):
    return _pointer(_word(buffer + BUFFER_NUMBERS)[0]), carray(
        _pointer(_word(buffer + BUFFER_SIZES)[0]), 8, types.int64
    )


@njit(inline="always")
def argument(frame, index):
    """Where the numbers of an argument are, and its sizes."""
    return _buffer(_word(_word(_address(frame) + FRAME_ARGUMENTS)[0] + 8 * index)[0])


@njit(inline="always")
def result(frame, index):
    """Where the numbers of a result belong, and its sizes."""
    return _buffer(_word(_word(_address(frame) + FRAME_RESULTS)[0] + 8 * index)[0])
