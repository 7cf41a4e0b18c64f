package filters

import (
	"errors"
	"fmt"
	"image"
	"slices"

	"github.com/noether-ml/noether/internal/contactsheet"
	"github.com/noether-ml/noether/tensor"
)

// Sheet draws filters of a convolution, all of one shape c x h x w with 1 or 3 channels, as a
// contact sheet with at most the given number of columns. Each value is a square with a side of
// scale pixels. Each filter is normalised: 0 is mid-grey, and the value of largest magnitude is
// black or white by its sign. Other shapes, no filters, and columns or scale below 1 are errors.
func Sheet(filters []tensor.Tensor, columns, scale int) (image.Image, error) {
	if len(filters) == 0 || columns < 1 || scale < 1 {
		return nil, errors.New("a contact sheet needs at least one filter, one column and a scale of 1")
	}
	shape := filters[0].Shape
	if len(shape) != 3 || shape[0] != 1 && shape[0] != 3 {
		return nil, fmt.Errorf("a filter has the shape %v: it must be c x h x w with 1 or 3 channels", shape)
	}
	const gap = 2
	h, w := shape[1]*scale, shape[2]*scale
	rows := (len(filters) + columns - 1) / columns
	columns = min(columns, len(filters))
	out := contactsheet.Blank(columns*(w+gap)+gap, rows*(h+gap)+gap)
	for i, f := range filters {
		if !slices.Equal(f.Shape, shape) {
			return nil, fmt.Errorf("filter %d has the shape %v, and the first %v: they must agree", i+1, f.Shape, shape)
		}
		contactsheet.Paint(out, gap+i%columns*(w+gap), gap+i/columns*(h+gap), scale, normalised(f))
	}
	return out, nil
}

// normalised returns a filter as an image: 0 maps to 1/2, the largest magnitude to 0 or 1.
func normalised(f tensor.Tensor) tensor.Tensor {
	var most float32
	for _, v := range f.Data {
		most = max(most, v, -v)
	}
	out := tensor.New(f.Shape...)
	for i, v := range f.Data {
		out.Data[i] = 0.5
		if most > 0 {
			out.Data[i] += v / most / 2
		}
	}
	return out
}
