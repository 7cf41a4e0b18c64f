package dataset

import (
	"context"
	"fmt"
	"math"
)

// A trimmed source cuts a border off its images.
type trimmed struct {
	wrapped
	border int
}

// Trimmed returns a source whose images lose a border of some pixels on each side before they are
// brought to the frame, for data sets that are published with a frame of a colour around each image.
// An image that is no larger than its border is a BadSample.
func Trimmed(src Source, border int) Source {
	d := newDigest("trimmed")
	d.add(src.Fingerprint(), border)
	return trimmed{wrapped{src, d.String()}, border}
}

func (t trimmed) At(ctx context.Context, i int, f Frame) (Sample, error) {
	s, err := t.Source.At(ctx, i, Frame{}) // as it is stored
	if err != nil {
		return s, err
	}
	if s.Input.Rank() != 3 {
		return s, fmt.Errorf("%s: only images have a border", s.Name)
	}
	c, h, w := s.Input.Shape[0], s.Input.Shape[1], s.Input.Shape[2]
	height, width := h-2*t.border, w-2*t.border
	if height < 1 || width < 1 {
		return s, &BadSample{s.Name, fmt.Errorf("the image of %d x %d pixels is no larger than its border of %d", w, h, t.border)}
	}
	planes := make([]uint8, 0, c*height*width) // 8 bits, which PIL resamples as such
	for k := range c {
		for y := t.border; y < h-t.border; y++ {
			for _, v := range s.Input.Data[(k*h+y)*w+t.border:][:width] {
				planes = append(planes, uint8(math.Round(float64(v)*255)))
			}
		}
	}
	if s.Input, err = f.fromBytes(planes, c, height, width); err != nil {
		return s, asBadSample(ctx, s.Name, err)
	}
	return s, nil
}
