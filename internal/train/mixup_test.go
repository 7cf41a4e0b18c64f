package train

import (
	"math"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// Mixup trains on lambda x + (1 - lambda) x', where lambda is of the distribution Beta(alpha,
// alpha) and x' is the partner of sample x in the batch. lambda has the mean 1/2 and the variance
// 1 / (4 (2 alpha + 1)) of that distribution, and the partners are a permutation of the batch. The
// last argument of drawMixture is the batch size.
func TestMixtureDistribution(t *testing.T) {
	t.Parallel()
	const n = 20_000
	for _, alpha := range []float64{0.2, 1, 4} {
		var sum, squares float64     // of the deviations of lambda from 1/2
		counts := make([]float64, 5) // how often each sample is the partner of sample 0
		for step := range n {
			lambda, partner := drawMixture(seed.Rand(3, "test", step), alpha, 5)
			d := float64(lambda) - 0.5
			sum, squares = sum+d, squares+d*d
			counts[partner[0]]++
			if sorted := slices.Sorted(slices.Values(partner)); !slices.Equal(sorted, []int{0, 1, 2, 3, 4}) {
				t.Fatalf("partners %v, want a permutation of 0 to 4", partner)
			}
		}
		variance := 1 / (4 * (2*alpha + 1))
		if mean := sum / n; math.Abs(mean) > 4*math.Sqrt(variance/n) {
			t.Errorf("alpha %g: the mean of lambda is %g, want 0.5", alpha, 0.5+mean)
		}
		// |d| is at most 1/2, so the variance of d^2 is at most E d^4 <= E d^2 / 4. The limit is
		// four standard errors.
		if got := squares / n; math.Abs(got-variance) > 4*math.Sqrt(variance/4/n) {
			t.Errorf("alpha %g: the variance of lambda is %g, want %g", alpha, got, variance)
		}
		for i, c := range counts {
			if math.Abs(c-n/5) > 4*math.Sqrt(n*0.2*0.8) {
				t.Errorf("alpha %g: sample 0 is mixed with sample %d in %g of %d steps, want about a fifth", alpha, i, c, n)
			}
		}
	}
	if lambda, _ := drawMixture(seed.Rand(1), 1e-300, 2); lambda != 0 && lambda != 1 {
		t.Errorf("lambda is %g for a tiny alpha, want 0 or 1", lambda)
	}
}

// The loss of a Mixup step is lambda times the loss of the mixed inputs with the targets of x, plus
// 1 - lambda times that with the targets of the partners. Five steps in one run of the engine
// (unrolled) give the losses and weights of five runs of one step (single). The engine is ONNX
// Runtime. The helpers are floats(values, shape...) of train_test.go and near, for agreement to
// 1e-4, of network_test.go.
func TestMixupStep(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	m, err := MLP(2, 3, 5, 4) // seed 2; 3 inputs, 5 hidden units, 4 outputs
	if err != nil {
		t.Fatal(err)
	}
	x := floats([]float64{.1, .5, -1, 2, .3, .7, -2, 1, 0, .6, -.4, 1.5}, 4, 3)
	target := floats([]float64{1, 0, 2, 1, -1, 3, 0, 2, .5, .1, 1, 1, 0, 0, 1, -2}, 4, 4)
	classes := []int{3, 0, 1, 2}
	const alpha, steps = 0.7, 5
	for _, loss := range []Loss{CrossEntropy, SquaredError} {
		spec := Spec{Model: m, Loss: loss, Optimiser: SGD{Rate: 0.1, Momentum: 0.9}, Mixup: alpha, Seed: 9}
		batch := Batch{Inputs: []tensor.Tensor{x}, Targets: Targets{Target: target, Classes: classes}}
		single, err := New(rt, spec)
		if err != nil {
			t.Fatal(err)
		}
		defer single.Close()
		spec.StepsPerRun = steps
		unrolled, err := New(rt, spec)
		if err != nil {
			t.Fatal(err)
		}
		defer unrolled.Close()
		metrics, err := unrolled.steps(t.Context(), slices.Repeat([]Batch{batch}, steps))
		if err != nil {
			t.Fatal(err)
		}
		for i := range steps {
			start := single.Weights()
			// The trainer draws with the same key: Spec.Seed, a name and the step.
			lambda, partner := drawMixture(seed.Rand(9, "train: mixup", i+1), alpha, 4)
			mixture := x.Clone()
			for row, j := range partner {
				for k := range 3 {
					mixture.At(row).Data[k] = lambda*x.At(row).Data[k] + (1-lambda)*x.At(j).Data[k]
				}
			}
			want, accuracy := 0.0, 0.0
			for weight, targets := range map[float32]Batch{lambda: batch, 1 - lambda: batch.rows(Batch{}, partner)} {
				targets.Inputs = []tensor.Tensor{mixture}
				result, err := single.evaluateBatch(t.Context(), targets, nil)
				if err != nil {
					t.Fatal(err)
				}
				for k, l := range result.losses {
					want += float64(weight) * l / 4
					if result.correct != nil {
						accuracy += float64(weight) * result.correct[k] / 4
					}
				}
			}
			got, err := single.steps(t.Context(), []Batch{batch})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got[0].Loss-want) > 1e-6 || math.Abs(metrics[i].Loss-want) > 1e-5 {
				t.Errorf("%s, step %d: the loss is %g, unrolled %g, want %g", loss.Name, i+1, got[0].Loss, metrics[i].Loss, want)
			}
			if result := got[0].Accuracy; loss.Name == CrossEntropy.Name && math.Abs(result-accuracy) > 1e-6 {
				t.Errorf("step %d: the accuracy is %g, want %g", i+1, result, accuracy)
			}
			if slices.Equal(start["layer1.weight"].Data, single.Weights()["layer1.weight"].Data) {
				t.Fatal("the step changes no weights")
			}
		}
		for name, w := range unrolled.Weights() {
			near(t, name, tensor.Float64s(w.Data), tensor.Float64s(single.Weights()[name].Data))
		}
	}
}

func TestMixupErrors(t *testing.T) {
	t.Parallel()
	m, err := MLP(2, 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, alpha := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := New(orttest.Load(t), Spec{Model: m, Loss: CrossEntropy, Optimiser: SGD{Rate: 1}, Mixup: alpha}); err == nil {
			t.Errorf("an alpha of %g is accepted", alpha)
		}
	}
}
