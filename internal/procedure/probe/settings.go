package probe

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

const (
	SLP   = "slp"   // one linear layer
	MLP   = "mlp"   // hidden layers with ReLU
	Ridge = "ridge" // linear least squares with an L2 penalty, in closed form
)

// Representation holds the settings that select samples and turn activations into vectors.
type Representation struct {
	Pool    string `key:"pool" json:"pool" default:"mean" enum:"mean|max|class|patch|flatten" doc:"how an activation becomes a vector: mean or max over space, time or tokens, the class token, the mean over the tokens of patches, or flatten"`
	Samples int    `key:"samples" json:"samples" min:"0" doc:"largest number of samples, taken in random order; default: all"`
}

// Training holds the settings of training and testing probes.
type Training struct {
	Probe       []string  `key:"probe" json:"probe" default:"[slp, mlp]" doc:"kinds of probes: slp (linear), mlp (hidden layers), ridge (linear, in closed form)"`
	Hidden      []int     `key:"hidden" json:"hidden" doc:"sizes of the mlp's hidden layers; default: [512, 256], or [512, 512] for representation-equivariance"`
	Rate        float64   `key:"rate" json:"rate" default:"0.001" min:"0" doc:"learning rate of Adam"`
	Decay       float64   `key:"decay" json:"decay" default:"0.001" min:"0" doc:"coupled weight decay, as in Adam with an L2 penalty"`
	Batch       int       `key:"batch" json:"batch" default:"32" min:"1" doc:"samples in a training step"`
	Epochs      int       `key:"epochs" json:"epochs" default:"100" min:"1" doc:"largest number of passes over the training samples"`
	Patience    int       `key:"patience" json:"patience" default:"10" min:"1" doc:"epochs without a smaller validation loss before training ends"`
	Seeds       int       `key:"seeds" json:"seeds" default:"3" min:"1" doc:"number of networks, trained from different initial weights; scores are means over them"`
	Split       []float64 `key:"split" json:"split" default:"[0.8, 0.1, 0.1]" doc:"fractions of the samples for training, validation and test"`
	Test        Part      `key:"test" json:"test" doc:"test samples: those with given values of a factor; the others are divided in the proportions of split"`
	Validation  Part      `key:"validation" json:"validation,omitzero" doc:"validation samples, selected like the test samples; they choose the best epoch"`
	Nulls       Nulls     `key:"nulls" json:"nulls,omitzero" default:"shuffled" enum:"shuffled|none" doc:"probes of shuffled targets, whose scores are the nulls; none: no nulls, in half the time"`
	Standardise bool      `key:"standardise" json:"standardise" doc:"scale each component of a representation to mean 0 and standard deviation 1 over the training samples"`
}

// Nulls says how the score of a probe by chance is found; "" is ShuffledNulls.
type Nulls string

const (
	ShuffledNulls Nulls = "shuffled" // by the same probe, trained on shuffled targets
	NoNulls       Nulls = "none"     // not at all
)

// IsZero reports whether n is the default, which the keys of cells do not have.
func (n Nulls) IsZero() bool { return n == "" || n == ShuffledNulls }

// A Part selects samples by the values of a factor. In joined data the factor part says which
// source a sample is from.
type Part struct {
	Factor string    `key:"factor" json:"factor" doc:"name of the factor, or label"`
	Values []float64 `key:"values" json:"values" doc:"values of the factor that select samples"`
	Names  []string  `key:"names" json:"names,omitempty" doc:"like values, for a factor whose values are names, such as part of joined data"`
}

func (p *Part) check(key string) error {
	if (p.Factor == "") != (len(p.Values)+len(p.Names) == 0) {
		return fmt.Errorf("%s needs both a factor and its values or names", key)
	}
	return nil
}

// Targets holds the settings of the factors that probes predict.
type Targets struct {
	Factors []string           `key:"factors" json:"factors" doc:"factors to predict, or label; default: all factors of the data, or label if there are none"`
	Classes []string           `key:"classes" json:"classes" doc:"numeric factors to predict as classes; label and factors whose values are names always are"`
	Scale   map[string]float64 `key:"scale" json:"scale" doc:"divisor of each factor; default: hue 180, saturation 255, value 255, others 1"`
}

func (t *Training) check() error {
	if len(t.Probe) == 0 {
		return errors.New("no probe: name some of slp, mlp, ridge")
	}
	for i, kind := range t.Probe {
		if kind != SLP && kind != MLP && kind != Ridge {
			return fmt.Errorf("unknown probe %q: it must be slp, mlp or ridge", kind)
		}
		if slices.Contains(t.Probe[:i], kind) {
			return fmt.Errorf("probe %s is listed twice", kind)
		}
	}
	for _, n := range t.Hidden {
		if n < 1 || n > 1<<16 {
			return fmt.Errorf("a hidden layer of %d units: it must have between 1 and 65,536", n)
		}
	}
	var sum float64
	for _, fraction := range t.Split {
		if !(fraction > 0) {
			return fmt.Errorf("split %v: every fraction must be above 0", t.Split)
		}
		sum += fraction
	}
	switch {
	case !t.Nulls.IsZero() && t.Nulls != NoNulls:
		return fmt.Errorf("nulls is %q: it must be %s or %s", t.Nulls, ShuffledNulls, NoNulls)
	case len(t.Split) != 3 || math.Abs(sum-1) > 1e-6:
		return fmt.Errorf("split %v: it must be the fractions for training, validation and test, with sum 1", t.Split)
	case t.Batch < 1 || t.Epochs < 1 || t.Patience < 1 || t.Seeds < 1:
		return fmt.Errorf("batches of %d, %d epochs, a patience of %d, %d seeds: each must be at least 1", t.Batch, t.Epochs, t.Patience, t.Seeds)
	case !(t.Rate > 0) || !(t.Decay >= 0) || math.IsInf(t.Rate+t.Decay, 0):
		return fmt.Errorf("a rate of %g and a decay of %g: the rate must be above 0 and the decay at least 0", t.Rate, t.Decay)
	}
	return cmp.Or(t.Test.check("test"), t.Validation.check("validation"))
}

func (t *Targets) check() error {
	for i, name := range t.Factors {
		if slices.Contains(t.Factors[:i], name) {
			return fmt.Errorf("factor %s is listed twice", name)
		}
	}
	for name, v := range t.Scale {
		if !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("the scale of %s is %g: it must be finite and above 0", name, v)
		}
	}
	return nil
}

// minSamples is the smallest number of samples that can be split.
const minSamples = 10

func (r *Representation) needs(transform bool) procedure.Needs {
	return procedure.Needs{Transform: transform, Layers: measure.PairSame, Samples: r.Samples}
}

// Instead of a transformation, the data may have ready-made pairs.
func (r *Representation) needsWithPairs() procedure.Needs {
	n := r.needs(true) // true: with a transformation
	n.ReadyPairs = true
	return n
}

func (r *Representation) skip(j *procedure.Job) string {
	if n := j.Data.Len(); n < minSamples {
		return fmt.Sprintf("%d samples are too few: at least %d are needed", n, minSamples)
	}
	if len(r.layers(j)) == 0 {
		return fmt.Sprintf("no layer can be pooled by %s", r.Pool)
	}
	return ""
}

func (r *Representation) layers(j *procedure.Job) []int {
	var out []int
	for i, l := range j.A.Layers {
		if pooling.Kind(r.Pool).Check(l) == nil {
			out = append(out, i)
		}
	}
	return out
}

func (r *Representation) dim(l tensor.Layer) int { return pooling.Kind(r.Pool).Dim(l) }

// version returns the version of a measure's scores, which is higher with ridge: its intervals
// contain the spread over training samples since then.
func (t *Training) version(without int) int {
	if slices.Contains(t.Probe, Ridge) {
		return without + 1
	}
	return without
}
