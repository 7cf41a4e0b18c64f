package dataset

import "context"

// An uncropped source brings images to the size of a frame without its crop.
type uncropped struct{ wrapped }

// Uncropped returns a source whose images are brought to the height and width of a frame whole, for
// data sets that are published in that size: the frame's resizing and crop, which are for
// photographs, would cut them again. An image of the size is unchanged.
func Uncropped(src Source) Source {
	d := newDigest("uncropped")
	d.add(src.Fingerprint())
	return uncropped{wrapped{src, d.String()}}
}

func (u uncropped) At(ctx context.Context, i int, f Frame) (Sample, error) {
	if f.Height > 0 && f.Width > 0 {
		f.Resize, f.Square = 0, false
	}
	return u.Source.At(ctx, i, f)
}
