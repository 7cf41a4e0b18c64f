package probe

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/features"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/onnx"
)

// Kinds of probes, values of Training.Probe.
const (
	SLP   = "slp"   // one linear layer
	MLP   = "mlp"   // hidden layers with ReLU
	Ridge = "ridge" // linear least squares with a penalty, in closed form
)

// Representation holds the settings of how activations become vectors, and of the samples.
type Representation struct {
	Pool    string `key:"pool" json:"pool" default:"mean" enum:"mean|max|class|flatten" doc:"how a layer's activation becomes a vector: over space, time or tokens"`
	Samples int    `key:"samples" json:"samples" min:"0" doc:"samples at most: the first of the random order; all where not given"`
}

// Training holds the settings of training and testing probes.
type Training struct {
	Probe       []string  `key:"probe" json:"probe" default:"[slp, mlp]" doc:"slp, mlp, ridge"`
	Hidden      []int     `key:"hidden" json:"hidden" doc:"sizes of the mlp's hidden layers; [512, 256], or [512, 512] of representation-equivariance"`
	Rate        float64   `key:"rate" json:"rate" default:"0.001" min:"0" doc:"learning rate of Adam"`
	Decay       float64   `key:"decay" json:"decay" default:"0.001" min:"0" doc:"weight decay, coupled"`
	Batch       int       `key:"batch" json:"batch" default:"32" min:"1" doc:"samples in a step"`
	Epochs      int       `key:"epochs" json:"epochs" default:"100" min:"1" doc:"passes over the training samples at most"`
	Patience    int       `key:"patience" json:"patience" default:"10" min:"1" doc:"epochs without a smaller validation loss before training ends"`
	Seeds       int       `key:"seeds" json:"seeds" default:"3" min:"1" doc:"networks that are trained, from different starts; scores are means over them"`
	Split       []float64 `key:"split" json:"split" default:"[0.8, 0.1, 0.1]" doc:"shares of the samples for training, validation and test"`
	Test        Part      `key:"test" json:"test" doc:"which samples are the test: those with certain values of a factor; the others are shared out by the other shares of split"`
	Validation  Part      `key:"validation" json:"validation,omitzero" doc:"which samples choose the epoch, likewise"`
	Standardise bool      `key:"standardise" json:"standardise" doc:"bring each number of a representation to mean 0 and deviation 1 over the training samples"`
}

// A Part selects samples by the values of a factor.
type Part struct {
	Factor string    `key:"factor" json:"factor" doc:"name of the factor, or label"`
	Values []float64 `key:"values" json:"values" doc:"of the samples that belong to it"`
	Names  []string  `key:"names" json:"names,omitempty" doc:"the same of a factor whose values are names, such as part of joined data"`
}

func (p *Part) check(key string) error {
	if (p.Factor == "") != (len(p.Values)+len(p.Names) == 0) {
		return fmt.Errorf("%s needs both a factor and its values or names", key)
	}
	return nil
}

// Targets holds the settings of the factors that probes predict.
type Targets struct {
	Factors []string           `key:"factors" json:"factors" doc:"factors of the data, or label; all that the data carry where not given"`
	Classes []string           `key:"classes" json:"classes" doc:"factors whose values are classes, not quantities; label is one"`
	Scale   map[string]float64 `key:"scale" json:"scale" doc:"what a factor is divided by; hue 180, saturation 255, value 255, others 1"`
}

func (t *Training) check() error {
	if len(t.Probe) == 0 {
		return errors.New("no probe: name some of slp, mlp, ridge")
	}
	for i, kind := range t.Probe {
		if kind != SLP && kind != MLP && kind != Ridge {
			return fmt.Errorf("probe %q: it must be slp, mlp or ridge", kind)
		}
		if slices.Contains(t.Probe[:i], kind) {
			return fmt.Errorf("probe %s is named twice", kind)
		}
	}
	for _, n := range t.Hidden {
		if n < 1 || n > 1<<16 {
			return fmt.Errorf("a hidden layer of %d units: it must have between 1 and 65,536", n)
		}
	}
	var sum float64
	for _, share := range t.Split {
		if !(share > 0) {
			return fmt.Errorf("split %v: every share must be above 0", t.Split)
		}
		sum += share
	}
	switch {
	case len(t.Split) != 3 || math.Abs(sum-1) > 1e-6:
		return fmt.Errorf("split %v: it must be the shares of training, validation and test, with sum 1", t.Split)
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
			return fmt.Errorf("the factor %s is named twice", name)
		}
	}
	for name, v := range t.Scale {
		if !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("the scale of %s is %g: it must be above 0", name, v)
		}
	}
	return nil
}

// minSamples is the smallest number of samples that can be split.
const minSamples = 10

// needs returns what all measures of the package need.
func (r *Representation) needs(transform bool) procedure.Needs {
	return procedure.Needs{Transform: transform, Layers: procedure.Same, Samples: r.Samples}
}

// skip returns why a job has nothing to probe, or "".
func (r *Representation) skip(j *procedure.Job) string {
	if n := j.Data.Len(); n < minSamples {
		return fmt.Sprintf("%d samples are too few: at least %d are needed", n, minSamples)
	}
	if len(r.layers(j)) == 0 {
		return fmt.Sprintf("no layer can be pooled by %s", r.Pool)
	}
	return ""
}

// layers returns the indices of the layers that can be pooled.
func (r *Representation) layers(j *procedure.Job) []int {
	var out []int
	for i, l := range j.A.Layers {
		if features.Pooling(r.Pool).Check(l) == nil {
			out = append(out, i)
		}
	}
	return out
}

func (r *Representation) dim(l onnx.Layer) int { return features.Pooling(r.Pool).Dim(l) }
