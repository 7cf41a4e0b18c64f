package video

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
)

// cutoff is f0 of the filter (see whitener) in cycles per pixel: about 200 cycles in 512 pixels, as
// in Olshausen and Field (1997).
const cutoff = 0.4

// A whitener is the band-pass filter of Olshausen and Field (1997),
//
//	R(f) = f exp(-(f / f0)^4) at the frequency f,
//
// which flattens the 1/f spectrum of natural images and suppresses the highest frequencies, where
// noise dominates. It is applied to the cosine transform (DCT-II), that is, to the image mirrored
// at its borders.
type whitener struct {
	h, w          int
	rows, columns *fourier.QuarterWaveFFT
	// h x w: R, over the factor by which a transform and its inverse scale values.
	gain        []float64
	row, column []float64 // buffers
	plane       []float64 // a buffer of h x w
}

func newWhitener(h, w int) *whitener {
	f := &whitener{h: h, w: w, rows: fourier.NewQuarterWaveFFT(w), columns: fourier.NewQuarterWaveFFT(h),
		gain: make([]float64, h*w), row: make([]float64, w), column: make([]float64, h), plane: make([]float64, h*w)}
	// A transform of n values and its inverse multiply them by 4 n.
	scale := 1 / (16 * float64(h) * float64(w))
	for i := range h {
		for j := range w {
			f.gain[i*w+j] = scale * bandPass(math.Hypot(float64(i)/float64(2*h), float64(j)/float64(2*w)))
		}
	}
	return f
}

// bandPass returns R at a frequency in cycles per pixel.
func bandPass(f float64) float64 { return f * math.Exp(-math.Pow(f/cutoff, 4)) }

// apply filters a plane of h x w in place.
func (f *whitener) apply(plane []float32) {
	for i, v := range plane {
		f.plane[i] = float64(v)
	}
	f.transform(f.rows.CosSequence, f.columns.CosSequence) // DCT-II
	for i, g := range f.gain {
		f.plane[i] *= g
	}
	f.transform(f.rows.CosCoefficients, f.columns.CosCoefficients) // DCT-III
	for i, v := range f.plane {
		plane[i] = float32(v)
	}
}

// transform transforms all rows and then all columns of f.plane.
func (f *whitener) transform(row, column func(dst, src []float64) []float64) {
	for i := range f.h {
		line := f.plane[i*f.w : (i+1)*f.w]
		copy(line, row(f.row, line))
	}
	for j := range f.w {
		for i := range f.h {
			f.column[i] = f.plane[i*f.w+j]
		}
		column(f.column, f.column)
		for i, v := range f.column {
			f.plane[i*f.w+j] = v
		}
	}
}
