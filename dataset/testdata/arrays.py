"""Makes testdata/arrays: one small batch of pictures as NumPy saves it in many ways, and labels. Run with Python 3 and NumPy.

Value (n, y, x, c) of the batch is 60 n + 15 y + 5 x + c, which every file holds, in 0..255 or as a fraction of 255.
"""
import os

import numpy as np

out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "arrays")
os.makedirs(out, exist_ok=True)
n, y, x, c = np.meshgrid(np.arange(4), np.arange(4), np.arange(2), np.arange(3), indexing="ij")
u8 = (60 * n + 15 * y + 5 * x + c).astype(np.uint8)
labels = np.array([2, 0, 1, 0])


def save(name, a):
    np.save(os.path.join(out, name), a)


save("nhwc-u1.npy", u8)
save("nchw-u1.npy", np.ascontiguousarray(u8.transpose(0, 3, 1, 2)))
save("nhw-u1.npy", np.ascontiguousarray(u8[..., 0]))
for kind in ("<f2", "<f4", ">f4", "<f8"):
    save(f"nhwc-{kind[1:]}{'-big' if kind[0] == '>' else ''}.npy", (u8 / 255).astype(kind))
save("nhwc-i4-max255.npy", u8.astype("<i4"))
save("fortran.npy", np.asfortranarray(u8))
save("labels-i8.npy", labels)
save("labels-u1.npy", labels.astype(np.uint8)[:, None])
save("labels-f4.npy", labels.astype(np.float32))
save("objects.npy", np.array([{}], dtype=object))
np.savez(os.path.join(out, "stored.npz"), x_test=u8, y_test=labels, x_train=u8[:1], y_train=labels[:1])
np.savez_compressed(os.path.join(out, "packed.npz"), images=u8, labels=labels[:, None].astype(np.uint8))
np.savez(os.path.join(out, "one.npz"), u8)
halves = np.array([0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x3555, 0x3C00, 0xC000, 0x7BFF, 0x7C00, 0xFC00, 0x7E00], "<u2").view("<f2")
save("halves.npy", halves)
save("halves-f8.npy", halves.astype("<f8"))
