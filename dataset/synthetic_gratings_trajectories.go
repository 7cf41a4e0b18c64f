package dataset

import (
	"context"
	"fmt"
	"math"

	"github.com/noether-ml/noether/tensor"
)

// A GratingTrajectories is a source of gratings and their trajectories. A trajectory varies one
// factor of a grating, its phase or its orientation. The first samples are those of a Gratings
// source, the base, in order. The others are the further steps of the trajectories. It implements
// Trajectories.
type GratingTrajectories struct {
	metadata
	base     *Gratings
	gratings []Grating // of each sample
	amounts  []float64 // added to the phase or the orientation, one for each step of a trajectory
	steps    [][]int   // indices of the gratings on the trajectory of each sample of base
}

// AlongPhase returns the trajectories of the translation test of Goodfellow et al., "Measuring
// Invariances in Deep Networks" (2009), footnote 1. They change the phase of each grating by up to
// pi either way, in steps of pi/20: 41 amounts, including 0. Amounts are in units of length, where
// the side of the image is pi.
func (s *Gratings) AlongPhase() *GratingTrajectories {
	return s.trajectories("phase", symmetric(20, math.Pi/20), func(g Grating, by float64) Grating {
		g.Phase += by
		return g
	})
}

// AlongOrientation returns the trajectories of the rotation test of the same footnote. They rotate
// each grating by up to 180 degrees either way, in steps of 4.5: 81 amounts, including 0. Amounts
// are in degrees.
func (s *Gratings) AlongOrientation() *GratingTrajectories {
	return s.trajectories("orientation", symmetric(40, 4.5), func(g Grating, by float64) Grating {
		g.Orientation += by
		return g
	})
}

// symmetric returns the multiples of step from -n to n.
func symmetric(n int, step float64) []float64 {
	out := make([]float64, 2*n+1)
	for i := range out {
		out[i] = float64(i-n) * step
	}
	return out
}

// trajectories returns the trajectories that vary each grating of s by the amounts. name is that of
// the varied factor. A step that looks like an earlier grating is the sample of that grating, so
// that a model runs on it once.
func (s *Gratings) trajectories(name string, amounts []float64, vary func(Grating, float64) Grating) *GratingTrajectories {
	fingerprint := syntheticFingerprint("gratings along "+name, gratingsVersion, s.options)
	w := &GratingTrajectories{metadata{factors: s.factors, fingerprint: fingerprint}, s, nil, amounts, make([][]int, s.Len())}
	indices := map[[3]int64]int{}
	indexOf := func(g Grating) int {
		key := g.key()
		i, known := indices[key]
		if !known {
			i = len(w.gratings)
			indices[key] = i
			w.gratings = append(w.gratings, g)
		}
		return i
	}
	for i := range s.Len() {
		g := s.Grating(i)
		// The base may contain the same image twice, for instance at both ends of the phases.
		if _, known := indices[g.key()]; known {
			w.gratings = append(w.gratings, g)
			continue
		}
		indexOf(g)
	}
	for i := range w.steps {
		for _, by := range amounts {
			if by == 0 {
				w.steps[i] = append(w.steps[i], i)
				continue
			}
			w.steps[i] = append(w.steps[i], indexOf(vary(s.Grating(i), by)))
		}
	}
	return w
}

// key returns equal values for gratings that differ by rounding, by a full rotation or by a shift
// of one wavelength.
func (g Grating) key() [3]int64 {
	const unit = 1e9 // steps per unit of a value: coarse enough to hide rounding errors
	round := func(v, period float64) int64 {
		if period > 0 && !math.IsInf(period, 0) {
			v = math.Mod(math.Mod(v, period)+period, period)
			if period-v < 1/unit {
				v = 0
			}
		}
		return int64(math.Round(v * unit))
	}
	return [3]int64{round(g.Frequency, 0), round(g.Orientation, 360), round(g.Phase, 2*math.Pi/math.Abs(g.Frequency))}
}

// Len returns the number of gratings, including those of the base.
func (w *GratingTrajectories) Len() int { return len(w.gratings) }

// Grating returns the grating of sample i.
func (w *GratingTrajectories) Grating(i int) Grating { return w.gratings[i] }

func (w *GratingTrajectories) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "gratings", i, w.Len()); err != nil {
		return Sample{}, err
	}
	return w.base.draw(i, w.gratings[i], frame)
}

// Amounts returns the values that are added to the phase or the orientation.
func (w *GratingTrajectories) Amounts() []float64 { return w.amounts }

// Trajectory returns the indices of the gratings on the trajectory of grating i of the base, and
// nil for other gratings.
func (w *GratingTrajectories) Trajectory(i int) []int {
	if i < 0 || i >= len(w.steps) {
		return nil
	}
	return w.steps[i]
}

// AsGratings returns src if that is a Gratings, or the Gratings from which src selects samples
// (subset), to which it gives other labels (relabelled) or from which it computes samples
// (computed); otherwise nil. The Index of a sample of src is its index in the result.
func AsGratings(src Source) *Gratings {
	switch src := src.(type) {
	case *Gratings:
		return src
	case subset, relabelled, computed:
		return AsGratings(src.(wrapper).unwrap())
	}
	return nil
}

// draw draws a grating as sample i.
func (s *Gratings) draw(i int, g Grating, frame Frame) (Sample, error) {
	image := tensor.New(s.options.Channels, s.options.Size, s.options.Size)
	if err := g.Draw(image); err != nil {
		return Sample{}, fmt.Errorf("gratings: drawing sample %d: %w", i, err)
	}
	input, err := frame.Tensor(image)
	if err != nil {
		return Sample{}, fmt.Errorf("gratings: framing sample %d: %w", i, err)
	}
	return Sample{
		Index:   i,
		Name:    fmt.Sprintf("gratings#%d", i),
		Input:   input,
		Label:   NoLabel,
		Factors: map[string]float64{"frequency": g.Frequency, "orientation": g.Orientation, "phase": g.Phase},
	}, nil
}
