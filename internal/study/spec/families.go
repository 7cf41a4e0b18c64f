package spec

import (
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/procedure/firing"
	"github.com/noether-ml/noether/internal/procedure/lie"
	"github.com/noether-ml/noether/internal/procedure/probe"
	"github.com/noether-ml/noether/internal/procedure/robust"
	"github.com/noether-ml/noether/internal/procedure/stir"
	"github.com/noether-ml/noether/internal/procedure/stitching"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/dense"
	"github.com/noether-ml/noether/measure/distance"
	"github.com/noether-ml/noether/measure/equivariance"
	"github.com/noether-ml/noether/measure/latent"
	"github.com/noether-ml/noether/measure/prediction"
	"github.com/noether-ml/noether/measure/seis"
	"github.com/noether-ml/noether/measure/similarity"
)

// A Family is a kind of method (measure.Method) that a study file (which says what is measured) can
// name, with its settings, their defaults and their documentation. A method is a measure, which is
// computed from running sums; a comparison of two layers; or a procedure, which works in steps,
// such as training a probe.
type Family struct {
	Name       string
	Descriptor measure.Descriptor // the question it answers, and its statistics
	// decode reads settings from a node of the YAML file and makes the method. An empty node gives the
	// defaults.
	decode func(n *config.Node) (measure.Method, error)
	schema func() map[string]any // JSON Schema of the settings
}

// Families returns the methods that a study can name, in the order of reports. To add one, write a
// package under measure and add a line here.
func Families() []Family {
	return []Family{
		family(prediction.AccuracyDescriptor(), withoutError(prediction.Accuracy)),
		family(prediction.EffectiveInvarianceDescriptor(), withoutError(prediction.EffectiveInvariance)),
		family(prediction.DivergenceDescriptor(), withoutError(prediction.Divergence)),
		family(prediction.ModelAgreementDescriptor(), withoutError(prediction.ModelAgreement)),
		family(seis.Descriptor(), withoutError(seis.New)),
		family(distance.Descriptor(), withoutError(distance.New)),
		family(equivariance.Descriptor(), withoutError(equivariance.New)),
		family(dense.Descriptor(), withoutError(dense.New)),
		family(dense.AccuracyDescriptor(), withoutError(func(struct{}) measure.Measure { return dense.Accuracy() })),
		family(lie.Descriptor(), lie.New),
		family(latent.Descriptor(), latent.New),
		family(similarity.GeometryDescriptor(), similarity.NewGeometry),
		family(similarity.Descriptor(), similarity.New),
		family(stir.Descriptor(), stir.New),
		family(stitching.Descriptor(), stitching.New),
		family(firing.Descriptor(), firing.New),
		family(probe.InformativenessDescriptor(), probe.Informativeness),
		family(probe.ParameterEquivarianceDescriptor(), probe.ParameterEquivariance),
		family(probe.RepresentationEquivarianceDescriptor(), probe.RepresentationEquivariance),
		family(probe.InvarianceDescriptor(), probe.Invariance),
		family(probe.RetrievalDescriptor(), probe.Retrieval),
		family(probe.DisentanglementDescriptor(), probe.Disentanglement),
		family(robust.Descriptor(), robust.New),
	}
}

// Descriptors returns the descriptors of all Families. Reports use them for runs of earlier
// versions of the program, whose record (run.json) has none.
func Descriptors() []measure.Descriptor {
	var out []measure.Descriptor
	for _, f := range Families() {
		out = append(out, f.Descriptor)
	}
	return out
}
