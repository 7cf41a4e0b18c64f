package firing

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Settings are the settings of the measure.
type Settings struct {
	Rate       float64  `key:"rate" json:"rate" default:"0.01" min:"0" max:"1" doc:"the global firing rate that thresholds are chosen for: units fire for this share of the data, or a little more where values tie"`
	Top        float64  `key:"top" json:"top" default:"0.2" min:"0" max:"1" doc:"p: a layer's score is the mean over this share of its units, the best"`
	Sparse     []string `key:"sparse" json:"sparse,omitempty" doc:"layers, as in a model's layers, whose units fire by high values alone (s = 1); in the others each unit takes the sign with the better score"`
	Positions  string   `key:"positions" json:"positions" default:"all" doc:"units of layers with space: all, every value; channels, each channel's maximum; a number, so many random positions"`
	Thresholds string   `key:"thresholds" json:"thresholds,omitempty" doc:"exact, the default; sketch: from a quantile sketch of each unit, whose memory does not grow with the data, with a further pass to count how often units fire"`
	Error      float64  `key:"error" json:"error,omitempty" min:"0" max:"0.5" doc:"of thresholds: sketch, by how much of itself the global rate that they give may miss the rate asked for, in the root mean square over units; 0.05 where not given"`
	References int      `key:"references" json:"references" min:"0" doc:"inputs that drive a unit most, whose trajectories are followed; 1 for gratings and 10 for other data where not given"`
	Steps      int      `key:"steps" json:"steps" default:"10" min:"1" doc:"draws along a trajectory, for a transformation that has a range"`
	Also       []string `key:"also" json:"also,omitempty" doc:"more to measure of each unit: variance, same-equivariance, normal-threshold, mutual-information"`
	Curves     int      `key:"curves" json:"curves" default:"4" min:"0" doc:"best units of each layer whose responses along their trajectory are kept in curves.parquet"`
}

// Additional statistics that Settings.Also can name.
const (
	// transformational and sample variance, and their ratio
	Variance = "variance"
	// the ratio after the inverse transformation of the feature maps
	SameEquivariance  = "same-equivariance"
	NormalThreshold   = "normal-threshold"   // firing rates at thresholds from mean and deviation
	MutualInformation = "mutual-information" // between firing and class
)

// Values of Settings.Positions besides numbers.
const (
	AllPositions = "all"
	Channels     = "channels"
)

// Defaults returns the settings of a study that sets none.
func Defaults() Settings {
	return Settings{Rate: 0.01, Top: 0.2, Positions: AllPositions, Steps: 10, Curves: 4}
}

func (s Settings) check() error {
	if !(s.Rate > 0 && s.Rate <= 1) {
		return fmt.Errorf("rate is %v: it must be above 0 and at most 1, such as 0.01", s.Rate)
	}
	if !(s.Top > 0 && s.Top <= 1) {
		return fmt.Errorf("top is %v: it must be above 0 and at most 1, such as 0.2", s.Top)
	}
	if err := s.checkThresholds(); err != nil {
		return err
	}
	if s.References < 0 || s.References > maxReferences {
		return fmt.Errorf("references is %d: take 1 to %d", s.References, maxReferences)
	}
	if s.Steps < 1 || s.Steps > maxSteps {
		return fmt.Errorf("steps is %d: take 1 to %d", s.Steps, maxSteps)
	}
	if s.Curves < 0 {
		return errors.New("curves is below 0")
	}
	known := []string{Variance, SameEquivariance, NormalThreshold, MutualInformation}
	for i, a := range s.Also {
		if !slices.Contains(known, a) {
			return fmt.Errorf("unknown statistic %q in also: it must be one of %v", a, known)
		}
		if slices.Contains(s.Also[:i], a) {
			return fmt.Errorf("also names %s more than once", a)
		}
	}
	_, err := s.positions()
	return err
}

// Values of Settings.Thresholds.
const (
	Exact    = "exact"
	Sketched = "sketch"
)

func (s Settings) checkThresholds() error {
	switch s.Thresholds {
	case "", Exact:
		if s.Error != 0 {
			return errors.New("error applies to thresholds: sketch only; remove it or set thresholds: sketch")
		}
	case Sketched:
		if s.Error != 0 && !(s.Error >= minError && s.Error <= 0.5) {
			return fmt.Errorf("error is %v: it must be between %v and 0.5", s.Error, minError)
		}
	default:
		return fmt.Errorf("thresholds is %q: it must be exact or sketch", s.Thresholds)
	}
	return nil
}

// tolerance returns the relative error that thresholds may have. It is 0 where they are exact.
func (s Settings) tolerance() float64 {
	switch {
	case s.Thresholds != Sketched:
		return 0
	case s.Error == 0:
		return 0.05
	}
	return s.Error
}

const (
	minError      = 0.001
	maxReferences = 1000
	maxSteps      = 1000
)

// positions returns the number of random positions, or 0 where units are all positions or maxima of
// channels.
func (s Settings) positions() (int, error) {
	if s.Positions == AllPositions || s.Positions == Channels {
		return 0, nil
	}
	n, err := strconv.Atoi(s.Positions)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("positions is %q: it must be all, channels or a positive number", s.Positions)
	}
	return n, nil
}

func (s Settings) also(what string) bool { return slices.Contains(s.Also, what) }
