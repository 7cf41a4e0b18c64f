package train

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// mixes reports whether a graph has the mixed losses of Spec.Mixup. Graphs for training have them,
// those for evaluation have not.
func (p *program) mixes(training bool) bool { return training && p.spec.Mixup > 0 }

// mixed returns lambda first + (1 - lambda) second for each sample.
func mixed(b *onnx.Builder, lambda, first, second onnx.Value) onnx.Value {
	return b.Add(b.Mul(lambda, first), b.Mul(b.Sub(b.Scalar(1), lambda), second))
}

// mix binds the inputs of a batch to those of a session, mixed for each sample with those of its
// partner: the sample at the same index of a random permutation of the batch, which may be the
// sample itself. It also binds the partners' targets for the main loss, Spec.Loss, and lambda. The
// seed and the number of the step determine the permutation and lambda. A session may run several
// steps (see notUnrolled).
func (t *Trainer) mix(s *boundSession, b *Batch, step, unrolledIndex int) error {
	lambda, partner := drawMixture(seed.Rand(t.program.spec.Seed, "train: mixup", step), t.program.spec.Mixup, b.len())
	other := b.rows(Batch{}, partner)
	for i, input := range t.program.inputs {
		x := tensor.New(b.Inputs[i].Shape...)
		for j, v := range b.Inputs[i].Data {
			x.Data[j] = lambda*v + (1-lambda)*other.Inputs[i].Data[j]
		}
		if err := s.setFloats(inputName(unrolledIndex, input.Name), x); err != nil {
			return err
		}
	}
	if err := t.feedMain(s, other.Targets, b.len(), inputName(unrolledIndex, partnerName)); err != nil {
		return err
	}
	return s.setScalar(inputName(unrolledIndex, lambdaName), lambda)
}

// rows returns the samples with the given indices. It uses the memory of dst.
func (b Batch) rows(dst Batch, indices []int) Batch {
	if len(dst.Inputs) != len(b.Inputs) {
		dst.Inputs = make([]tensor.Tensor, len(b.Inputs))
	}
	if len(dst.Tasks) != len(b.Tasks) {
		dst.Tasks = make([]Targets, len(b.Tasks))
	}
	for i, x := range b.Inputs {
		dst.Inputs[i] = rows(dst.Inputs[i], x, indices)
	}
	dst.Targets = b.Targets.rows(dst.Targets, indices)
	for i, t := range b.Tasks {
		dst.Tasks[i] = t.rows(dst.Tasks[i], indices)
	}
	return dst
}

// drawMixture returns lambda, of the distribution Beta(alpha, alpha), and the partners, a
// permutation of n samples.
func drawMixture(r *rand.Rand, alpha float64, n int) (lambda float32, partner []int) {
	v := distuv.Beta{Alpha: alpha, Beta: alpha, Src: r}.Rand()
	// For a tiny alpha both gamma variates that give v are 0: lambda is nearly 0 or 1.
	if math.IsNaN(v) {
		v = math.Round(r.Float64())
	}
	return float32(v), r.Perm(n)
}
