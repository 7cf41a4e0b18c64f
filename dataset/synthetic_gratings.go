package dataset

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/tensor"
)

// A Grating is a sinusoid over the whole image, as in section 5 of Goodfellow et al. (2009):
//
//	I(x, y) = b + a sin(omega (x cos(theta) + y sin(theta) - phi))
//
// The origin is the centre of the image, x points right and y up. The side of the image is pi, so
// an image shows Frequency / 2 cycles. Both b and a are 1/2, so values fill [0, 1].
type Grating struct {
	Frequency float64 // omega: radians per unit of length; 2 is one cycle over the side, pi
	// theta: direction of the wave, degrees counter-clockwise; 0: vertical stripes.
	Orientation float64
	// phi: shift in the direction of the wave, in units of length; pi is the side.
	Phase float64
}

// Draw draws the grating on dst, c x h x w, the same in every channel. The unit of length refers to
// the shorter side of dst.
func (g Grating) Draw(dst tensor.Tensor) error {
	if dst.Rank() != 3 || dst.Shape[0] < 1 {
		return fmt.Errorf("a grating needs a tensor of channels x height x width, not %v", dst.Shape)
	}
	h, w := dst.Shape[1], dst.Shape[2]
	unit := math.Pi / float64(min(h, w))
	sin, cos := math.Sincos(g.Orientation * math.Pi / 180)
	// sin(p + q) = sin p cos q + cos p sin q needs one sine for each row and column, not for each
	// pixel.
	alongX := waves(w, g.Frequency*cos*unit, 0)
	alongY := waves(h, -g.Frequency*sin*unit, -g.Frequency*g.Phase) // rows run downwards, y upwards
	for i, q := range alongY {
		row := dst.Data[i*w : (i+1)*w]
		for j, p := range alongX {
			row[j] = float32(0.5 + 0.5*(p.sin*q.cos+p.cos*q.sin))
		}
	}
	for c := 1; c < dst.Shape[0]; c++ {
		copy(dst.Data[c*h*w:(c+1)*h*w], dst.Data[:h*w])
	}
	return nil
}

// A wave holds the sine and cosine of one angle.
type wave struct{ sin, cos float64 }

// waves returns the sine and cosine of the angle step d + shift for each of n pixels in a line. d
// is the distance in pixels from the middle of the line to the centre of the pixel. step is in
// radians per pixel.
func waves(n int, step, shift float64) []wave {
	out := make([]wave, n)
	for i := range out {
		out[i].sin, out[i].cos = math.Sincos(step*(float64(i)+0.5-float64(n)/2) + shift)
	}
	return out
}

// GratingsOptions are the options of OpenGratings, which draws all combinations of the values in
// three lists.
type GratingsOptions struct {
	Size     int // side of the square image in pixels; 0: 32
	Channels int // 3 (with equal values) or 1; 0: 3

	// The lists are in the units of Grating, where the side has length pi.
	Frequencies  []float64 // nil: 2, 4, 6, 8
	Orientations []float64 // nil: 0 to 180 in steps of 9 (21 values)
	Phases       []float64 // nil: 0 to pi in steps of pi/20 (21 values)
}

// gratingsVersion changes when the same options give different samples.
const gratingsVersion = 1

// Gratings is a synthetic Source of a grid of gratings. See OpenGratings.
type Gratings struct {
	metadata
	options GratingsOptions
}

// OpenGratings returns the gratings of all combinations of frequency, orientation and phase. The
// phase varies fastest and the frequency slowest. A list that is nil has the values of footnote 1
// of Goodfellow et al. (2009): 4 x 21 x 21 = 1,764 gratings in all. As in the paper, both ends of a
// range are included. So the gratings at 0 and at 180 degrees have the same stripes, mirrored.
//
// Each sample has the factors frequency, orientation and phase, in the units of Grating, and no
// label.
func OpenGratings(o GratingsOptions) (*Gratings, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("gratings: %w", err)
	}
	factors := []string{"frequency", "orientation", "phase"}
	return &Gratings{metadata{factors: factors, fingerprint: syntheticFingerprint("gratings", gratingsVersion, o)}, o}, nil
}

func (o GratingsOptions) withDefaults() GratingsOptions {
	orList := func(list, standard []float64) []float64 {
		if list == nil {
			return standard
		}
		return slices.Clone(list)
	}
	o.Size = cmp.Or(o.Size, 32)
	o.Channels = cmp.Or(o.Channels, 3)
	o.Frequencies = orList(o.Frequencies, []float64{2, 4, 6, 8})
	o.Orientations = orList(o.Orientations, steps(21, 9))
	o.Phases = orList(o.Phases, steps(21, math.Pi/20))
	return o
}

// steps returns n values from 0 with equal steps.
func steps(n int, step float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(i) * step
	}
	return out
}

func (o GratingsOptions) check() error {
	if err := checkCanvas(o.Size, o.Channels); err != nil {
		return err
	}
	for _, l := range []struct {
		name string
		list []float64
	}{{"frequencies", o.Frequencies}, {"orientations", o.Orientations}, {"phases", o.Phases}} {
		if len(l.list) == 0 || len(l.list) > maxGrid {
			return fmt.Errorf("%s has %d values: list 1 to %d, or remove it for the values of the paper", l.name, len(l.list), maxGrid)
		}
		for _, v := range l.list {
			if v-v != 0 { // NaN or infinite
				return fmt.Errorf("%s contains %v: use finite numbers", l.name, v)
			}
		}
	}
	return nil
}

// maxGrid is the largest number of values of one factor, so that the number of gratings, the
// product of three, fits an int32.
const maxGrid = 1024

func (s *Gratings) Len() int {
	return len(s.options.Frequencies) * len(s.options.Orientations) * len(s.options.Phases)
}

// Grating returns the grating of sample i.
func (s *Gratings) Grating(i int) Grating {
	o, p := len(s.options.Orientations), len(s.options.Phases)
	return Grating{
		Frequency:   s.options.Frequencies[i/(o*p)],
		Orientation: s.options.Orientations[i/p%o],
		Phase:       s.options.Phases[i%p],
	}
}

func (s *Gratings) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "gratings", i, s.Len()); err != nil {
		return Sample{}, err
	}
	return s.draw(i, s.Grating(i), frame)
}
