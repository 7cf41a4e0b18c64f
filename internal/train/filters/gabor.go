package filters

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/optimize"

	"github.com/noether-ml/noether/tensor"
)

// A Gabor is a Gabor function:
//
//	g(x, y) = a exp(-u^2 / (2 s^2) - v^2 / (2 t^2)) cos(2 pi f u + phi)
//
// where (u, v) is (x - x0, y - y0) turned by -theta. Lengths are in pixels, x to the right and y
// down from the centre of the upper left pixel.
type Gabor struct {
	X, Y        float64 // x0, y0: the centre of the window
	Along       float64 // s, the standard deviation of the window along the wave
	Across      float64 // t, the standard deviation across the wave
	Frequency   float64 // f in cycles per pixel
	Orientation float64 // theta in radians: the direction of the wave
	Amplitude   float64 // a
	Phase       float64 // phi in radians
	// Explained is 1 - |w - g|^2 / |w|^2, where w is the filter that the function is fitted to.
	Explained float64
}

// wave returns the window at (x, y), and the angle of the wave without its phase.
func (g Gabor) wave(x, y float64) (window, angle float64) {
	sin, cos := math.Sincos(g.Orientation)
	u, v := (x-g.X)*cos+(y-g.Y)*sin, (y-g.Y)*cos-(x-g.X)*sin
	return math.Exp(-u*u/(2*g.Along*g.Along) - v*v/(2*g.Across*g.Across)), 2 * math.Pi * g.Frequency * u
}

// Fit fits a Gabor function to a filter, h x w, by least squares. Amplitude and phase are solved
// for; the other six parameters are searched by the Nelder-Mead method from several starts. A
// filter of fewer than 8 values, and one that is all 0 or not finite, is an error.
func Fit(filter tensor.Tensor) (Gabor, error) {
	if filter.Rank() != 2 || filter.Len() < 8 {
		return Gabor{}, fmt.Errorf("fitting a Gabor function: the filter has the shape %v: it must be h x w with at least 8 values", filter.Shape)
	}
	f := newTarget(filter)
	if f.energy == 0 || math.IsNaN(f.energy) || math.IsInf(f.energy, 0) {
		return Gabor{}, fmt.Errorf("fitting a Gabor function: the filter has the energy %g", f.energy)
	}
	best := Gabor{Explained: math.Inf(-1)}
	// Largest number of steps; size of the first simplex, in the units of target.gabor.
	const steps, simplex = 400, 0.3
	for _, start := range f.starts() {
		problem := optimize.Problem{Func: func(p []float64) float64 { return f.error(p) }}
		found, err := optimize.Minimize(problem, start, &optimize.Settings{MajorIterations: steps}, &optimize.NelderMead{SimplexSize: simplex})
		if found == nil {
			return Gabor{}, fmt.Errorf("fitting a Gabor function: %w", err)
		}
		if g := f.solved(found.X); g.Explained > best.Explained {
			best = g
		}
	}
	return best, nil
}

// A target is a filter w that is fitted, with its energy |w|^2.
type target struct {
	h, w   int
	data   []float64
	energy float64
}

func newTarget(filter tensor.Tensor) *target {
	f := &target{h: filter.Shape[0], w: filter.Shape[1]}
	for _, v := range filter.Data {
		f.data = append(f.data, float64(v))
		f.energy += float64(v) * float64(v)
	}
	return f
}

// gabor returns the function of six parameters: the position in pixels, the logarithms of both
// standard deviations, and the wave vector in cycles per ten pixels. Standard deviations are
// limited to 0.4 pixels to twice the longer side. The frequency is limited to 0.7 cycles per pixel,
// about that of a chessboard of single pixels.
func (f *target) gabor(p []float64) Gabor {
	side := float64(max(f.h, f.w))
	bounded := func(v float64) float64 { return min(2*side, max(0.4, math.Exp(v))) }
	return Gabor{X: p[0], Y: p[1], Along: bounded(p[2]), Across: bounded(p[3]),
		Frequency: min(0.7, math.Hypot(p[4], p[5])/10), Orientation: math.Atan2(p[5], p[4])}
}

func (f *target) error(p []float64) float64 { return 1 - f.solved(p).Explained }

// solved returns the function with the best amplitude and phase: g = alpha C + beta S, where C and
// S are the window times cosine and sine, and alpha and beta solve 2 x 2 normal equations.
func (f *target) solved(p []float64) Gabor {
	g := f.gabor(p)
	var cc, cs, ss, cw, sw float64
	for i, w := range f.data {
		window, angle := g.wave(float64(i%f.w), float64(i/f.w))
		sin, cos := math.Sincos(angle)
		c, s := window*cos, window*sin
		cc, cs, ss, cw, sw = cc+c*c, cs+c*s, ss+s*s, cw+c*w, sw+s*w
	}
	ridge := 1e-9 * (cc + ss) // keeps the equations solvable where C and S are proportional
	cc, ss = cc+ridge, ss+ridge
	det := cc*ss - cs*cs
	if !(det > 0) {
		g.Explained = 0
		return g
	}
	alpha, beta := (cw*ss-sw*cs)/det, (sw*cc-cw*cs)/det
	g.Amplitude, g.Phase = math.Hypot(alpha, beta), math.Atan2(-beta, alpha)
	left := f.energy - 2*(alpha*cw+beta*sw) + alpha*alpha*(cc-ridge) + 2*alpha*beta*cs + beta*beta*(ss-ridge)
	g.Explained = 1 - left/f.energy
	return g
}

// starts returns the starts of the search: at the centre of energy of the filter, with the two
// strongest frequencies of its spectrum, each in a narrow and in a wide window (standard deviations
// of 0.12 and 0.3 of the longer side).
func (f *target) starts() [][]float64 {
	var x, y float64
	for i, v := range f.data {
		share := v * v / f.energy
		x, y = x+share*float64(i%f.w), y+share*float64(i/f.w)
	}
	var out [][]float64
	for _, k := range f.peakFrequencies(2) {
		for _, width := range []float64{0.12, 0.3} {
			s := math.Log(width * float64(max(f.h, f.w)))
			out = append(out, []float64{x, y, s, s, 10 * k[0], 10 * k[1]})
		}
	}
	return out
}

// peakFrequencies returns the n frequencies of the largest power, in cycles per pixel right and
// down. It leaves out a frequency if its distance from a stronger one is at most 1.5 cycles over
// the shorter side.
func (f *target) peakFrequencies(n int) [][2]float64 {
	type peak struct{ power, fx, fy float64 }
	var peaks []peak
	const fine = 2 // the spectrum is computed at multiples of 1 / fine cycles over the side
	for i := -fine * f.h / 2; i <= fine*f.h/2; i++ {
		for j := 0; j <= fine*f.w/2; j++ {
			fx, fy := float64(j)/float64(fine*f.w), float64(i)/float64(fine*f.h)
			peaks = append(peaks, peak{f.power(fx, fy), fx, fy})
		}
	}
	var out [][2]float64
	for len(out) < n {
		best := peak{power: -1}
		for _, p := range peaks {
			separate := true
			for _, o := range out {
				separate = separate && math.Hypot(p.fx-o[0], p.fy-o[1]) > 1.5/float64(min(f.h, f.w))
			}
			if separate && p.power > best.power {
				best = p
			}
		}
		if best.power < 0 {
			break
		}
		out = append(out, [2]float64{best.fx, best.fy})
	}
	return out
}

func (f *target) power(fx, fy float64) float64 {
	var re, im float64
	for i, v := range f.data {
		sin, cos := math.Sincos(2 * math.Pi * (fx*float64(i%f.w) + fy*float64(i/f.w)))
		re, im = re+v*cos, im+v*sin
	}
	return re*re + im*im
}

// Noise draws n filters of white Gaussian noise, h x w each, and returns the fraction of the energy
// of each that a Gabor function explains.
func Noise(h, w, n int, r *rand.Rand) ([]float64, error) {
	out := make([]float64, n)
	for i := range out {
		filter := tensor.New(h, w)
		for j := range filter.Data {
			filter.Data[j] = float32(r.NormFloat64())
		}
		g, err := Fit(filter)
		if err != nil {
			return nil, err
		}
		out[i] = g.Explained
	}
	return out, nil
}
