package firing

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Settings are the settings of the measure. A unit fires if s h reaches a threshold, where h is its
// value and the sign s is 1 or -1.
type Settings struct {
	Rate       float64  `key:"rate" json:"rate" default:"0.01" min:"0" max:"1" doc:"global firing rate, which determines thresholds: the fraction of the data at which units fire (more if values tie)"`
	Top        float64  `key:"top" json:"top" default:"0.2" min:"0" max:"1" doc:"p: a layer's score is the mean over this fraction of its units, those with the best scores"`
	Sparse     []string `key:"sparse" json:"sparse,omitempty" doc:"layers, as in a model's layers, whose units fire only at high values (s = 1); in other layers each unit has the sign with the better score"`
	Positions  string   `key:"positions" json:"positions" default:"all" doc:"units of layers with spatial axes: all (every value), channels (the maximum of each channel), or a number of random positions"`
	Thresholds string   `key:"thresholds" json:"thresholds,omitempty" doc:"exact (default), or sketch: from a quantile sketch of each unit, whose memory does not grow with the data; it needs another pass to count firing"`
	Error      float64  `key:"error" json:"error,omitempty" min:"0" max:"0.5" doc:"for thresholds: sketch, relative error of the global rate, as root mean square over units; default: 0.05"`
	References int      `key:"references" json:"references" min:"0" doc:"number of reference stimuli of a unit, the inputs that activate it most; default: 1 for gratings, 10 for other data"`
	Steps      int      `key:"steps" json:"steps" default:"10" min:"1" doc:"number of draws on a trajectory, for a transformation with a range"`
	Also       []string `key:"also" json:"also,omitempty" doc:"additional statistics of each unit: variance, same-equivariance, normal-threshold, mutual-information"`
	Curves     int      `key:"curves" json:"curves" default:"4" min:"0" doc:"number of best units of each layer whose responses on their trajectory are written to curves.parquet"`
}

// Additional statistics that Settings.Also can name.
const (
	// Variance adds transformational variance, sample variance, and their ratio (see variances).
	Variance = "variance"
	// SameEquivariance adds their ratio after the inverse transformation of feature maps.
	SameEquivariance  = "same-equivariance"
	NormalThreshold   = "normal-threshold"   // firing-rate invariance at thresholds from mean and standard deviation
	MutualInformation = "mutual-information" // between firing and class
)

const (
	AllPositions = "all"
	Channels     = "channels"
)

// Defaults returns the default settings of a study.
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
		return fmt.Errorf("references is %d: it must be 1 to %d", s.References, maxReferences)
	}
	if s.Steps < 1 || s.Steps > maxSteps {
		return fmt.Errorf("steps is %d: it must be 1 to %d", s.Steps, maxSteps)
	}
	if s.Curves < 0 {
		return fmt.Errorf("curves is %d: it must be at least 0", s.Curves)
	}
	known := []string{Variance, SameEquivariance, NormalThreshold, MutualInformation}
	for i, a := range s.Also {
		if !slices.Contains(known, a) {
			return fmt.Errorf("unknown statistic %q in also: it must be one of %v", a, known)
		}
		if slices.Contains(s.Also[:i], a) {
			return fmt.Errorf("also lists %s more than once", a)
		}
	}
	_, err := s.positions()
	return err
}

const (
	Exact    = "exact"
	Sketched = "sketch"
)

func (s Settings) checkThresholds() error {
	switch s.Thresholds {
	case "", Exact:
		if s.Error != 0 {
			return errors.New("error has no effect without thresholds: sketch; remove it or set thresholds: sketch")
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

// tolerance returns the allowed relative error of the rank of thresholds, or 0 for exact ones.
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

// positions returns the number of random positions, 0 if units are all values or maxima.
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
