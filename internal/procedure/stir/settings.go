package stir

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/measure/similarity"
)

// Kinds of inversions. m1 is the reference model; m2 is the other one.
const (
	// Arbitrary inversion starts from noise, or as Settings.Start says, and matches x in m1.
	Arbitrary = "arbitrary"
	// Adversarial inversion also maximises the distance between m2's representations of x' and x.
	Adversarial = "adversarial"
	// Controversial inversion is adversarial inversion that starts from x with a little noise.
	Controversial = "controversial"
)

// Settings are the settings of the measure. X and X' are all images and those found for them.
// Equation 2 is that of Nanda et al. 2022.
type Settings struct {
	Images     int      `key:"images" json:"images" default:"1000" min:"2" doc:"largest number of images, taken in random order; each trial takes the next ones"`
	Inversions []string `key:"inversions" json:"inversions" default:"[arbitrary]" doc:"how x' is found: arbitrary, adversarial, controversial"`
	Similarity []string `key:"similarity" json:"similarity" default:"[linear-cka]" doc:"similarities of m2(X) and m2(X'): any of the measure similarity"`
	Start      string   `key:"start" json:"start" default:"noise" enum:"noise|normal|white|black|one|shuffled" doc:"start of arbitrary and adversarial inversion: uniform integers 0 to 255 (the paper), N(0, 1) (the authors' code), white, black, one image of noise for all images, the images in another order"`
	Optimiser  string   `key:"optimiser" json:"optimiser" default:"paper" enum:"paper|adam" doc:"paper: steps of fixed length along the gradient; adam: the same distance in a tenth of the steps"`
	Steps      int      `key:"steps" json:"steps" min:"1" doc:"number of steps; default: 1000, or 150 with adam"`
	StepSize   float64  `key:"step-size" json:"stepSize" min:"0" doc:"length of a step in the l2 norm of images, or with adam the learning rate; default: 0.5, or 0.01 with adam"`
	Normalised bool     `key:"normalised" json:"normalised" doc:"for adversarial and controversial: divide distances by the norm of the representation of x, and weight that of m2 by beta, as in the authors' code"`
	Beta       float64  `key:"beta" json:"beta" default:"0.1" min:"0" doc:"weight of the distance by m2, with normalised: true"`
	Delta      float64  `key:"delta" json:"delta" default:"0.1" min:"0" doc:"largest relative distance between m1's representations of x' and x that counts as the same (equation 2)"`
	Batch      int      `key:"batch" json:"batch" min:"1" doc:"images that are inverted together, divided among concurrent runs of the engine; default: by the size of the model"`
}

// defaultBeta is the weight in the code of Nanda et al. 2022 (see the package).
const defaultBeta = 0.1

func (s Settings) check() error {
	if len(s.Inversions) == 0 {
		return errors.New("no inversions: name some of arbitrary, adversarial, controversial")
	}
	for i, kind := range s.Inversions {
		if !slices.Contains([]string{Arbitrary, Adversarial, Controversial}, kind) {
			return fmt.Errorf("unknown inversion %q: it must be arbitrary, adversarial or controversial", kind)
		}
		if slices.Contains(s.Inversions[:i], kind) {
			return fmt.Errorf("inversion %s is listed twice", kind)
		}
	}
	if len(s.Similarity) == 0 {
		return fmt.Errorf("no similarity: name some of %s", strings.Join(similarity.Names(), ", "))
	}
	for i, name := range s.Similarity {
		if !slices.Contains(similarity.Names(), name) {
			return fmt.Errorf("unknown similarity %q: it must be one of %s", name, strings.Join(similarity.Names(), ", "))
		}
		if slices.Contains(s.Similarity[:i], name) {
			return fmt.Errorf("similarity %s is listed twice", name)
		}
	}
	switch {
	case s.Images < 2:
		return fmt.Errorf("images is %d: it must be at least 2", s.Images)
	case !slices.Contains(invert.StartKinds(), invert.StartKind(s.Start)):
		return fmt.Errorf("unknown start %q: it must be one of %v", s.Start, invert.StartKinds())
	case !(s.Delta > 0):
		return fmt.Errorf("delta is %v: it must be above 0", s.Delta)
	case s.Normalised && !(s.Beta > 0):
		return fmt.Errorf("beta is %v: it must be above 0", s.Beta)
	case !s.Normalised && s.Beta != 0 && s.Beta != defaultBeta:
		return fmt.Errorf("beta is %v, but has no effect without normalised: true", s.Beta)
	}
	_, err := s.options().WithDefaults() // checks the other settings
	return err
}

func (s Settings) options() invert.Options {
	return invert.Options{Optimiser: invert.Optimiser(s.Optimiser), Steps: s.Steps, StepSize: s.StepSize, Batch: s.Batch}
}
