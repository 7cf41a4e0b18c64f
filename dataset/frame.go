package dataset

// A Frame says how a picture is brought to the size and the channels that a model takes: the short side is resized,
// then the centre cropped. The zero Frame leaves a picture as it is.
type Frame struct {
	Resize        int    // length of the short side after resizing; 0: no resizing before the crop
	Height, Width int    // of the centre crop; 0: as it comes. A picture of another size is resized to this if Resize is 0
	Channels      int    // 3: colour, grey is repeated; 1: grey; 0: as it comes
	Interpolation string // "bilinear" (default; area-weighted when shrinking, as PIL does), "bicubic" or "nearest"
}
