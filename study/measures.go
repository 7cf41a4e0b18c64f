package study

import (
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/distance"
	"github.com/noether-ml/noether/measure/firing"
	"github.com/noether-ml/noether/measure/prediction"
	"github.com/noether-ml/noether/measure/probe"
	"github.com/noether-ml/noether/measure/robust"
	"github.com/noether-ml/noether/measure/seis"
	"github.com/noether-ml/noether/measure/similarity"
	"github.com/noether-ml/noether/measure/stir"
)

// A Family is a measure, comparison or procedure as a study file names it: its settings, with their defaults and their documentation in tags, and
// how it is made from them.
type Family struct {
	Name string
	Doc  string // one sentence: what it asks
	// decode reads settings from a node, nil for all defaults, and makes the method.
	decode func(n *config.Node) (measure.Method, error)
	schema func() map[string]any
}

// Families are the measures that a study can name. A new one is a package under measure and a line here.
func Families() []Family {
	return []Family{
		family("accuracy", "Is the class right on x, and on T(x)?", plain(prediction.Accuracy)),
		family("effective-invariance", "Does the prediction hold under T, with confidence?", plain(prediction.EffectiveInvariance)),
		family("prediction-divergence", "How far do the predicted probabilities move under T?", plain(prediction.Divergence)),
		family("distance", "How far does a layer's activation move under T?", plain(distance.New)),
		family("seis", "Is a layer's spatial information still there after T, and in the same place?", plain(seis.New)),
		family("similarity", "How alike are two representations of the same inputs?", similarity.New),
		family("stir", "Which inputs are the same to one model, and are they the same to another?", stir.New),
		family("firing", "Does a single unit keep firing for its feature while the input is transformed?", firing.New),
		family("robust-accuracy", "Is the class still right after the worst small change of the image?", robust.New),
		family("informativeness", "What can a small probe read of a factor from a layer?", probe.Informativeness),
		family("parameter-equivariance", "Can a probe tell from f(x) and f(T(x)) what T did?", probe.ParameterEquivariance),
		family("representation-equivariance", "Can a probe predict f(T(x)) from f(x) and T's parameter?", probe.RepresentationEquivariance),
		family("invariance", "Does a layer's pooled vector stay where it is, for each value of T's parameter?", probe.Invariance),
		family("disentanglement", "Does a probe for one factor still read it when T changes another?", probe.Disentanglement),
	}
}
