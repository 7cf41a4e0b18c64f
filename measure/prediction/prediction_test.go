package prediction_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/measure/prediction"
	"github.com/noether-ml/noether/tensor"
)

// logSoftmax returns the log-probabilities of rows of logits.
func logSoftmax(logits []float32, k int) []float32 {
	out := make([]float32, len(logits))
	for lo := 0; lo < len(logits); lo += k {
		var sum float64
		for _, v := range logits[lo : lo+k] {
			sum += math.Exp(float64(v))
		}
		for i := lo; i < lo+k; i++ {
			out[i] = float32(float64(logits[i]) - math.Log(sum))
		}
	}
	return out
}

// logs returns the logarithms of probabilities.
func logs(p ...float64) []float32 {
	out := make([]float32, len(p))
	for i, v := range p {
		out[i] = float32(math.Log(v))
	}
	return out
}

func classes(k int) []string {
	var out []string
	for i := range k {
		out = append(out, fmt.Sprintf("c%d", i))
	}
	return out
}

// random returns predictions (log-probabilities) of n samples over k classes, and labels. The
// predictions on the transformed samples T(x) are near those on the clean samples x, and the labels
// are often the predicted classes.
func random(n, k int, seed uint64) (clean, transformed tensor.Tensor, label []int) {
	r := rand.New(rand.NewPCG(seed, 7))
	a, b := make([]float32, n*k), make([]float32, n*k)
	for i := range a {
		a[i] = float32(2 * r.NormFloat64())
		b[i] = a[i] + float32(r.NormFloat64())
	}
	for i := range n {
		a[i*k+i%k] += 3
		label = append(label, i%k)
	}
	clean, _ = tensor.From(logSoftmax(a, k), n, k)
	transformed, _ = tensor.From(logSoftmax(b, k), n, k)
	return clean, transformed, label
}

// measures returns the three measures that compare predictions on clean and transformed samples.
func measures(s prediction.Settings) []measure.Measure {
	return []measure.Measure{prediction.Accuracy(s), prediction.EffectiveInvariance(s), prediction.Divergence(s)}
}

// TestContract checks what every accumulator of scores must satisfy, such as that scores do not
// depend on the batches.
func TestContract(t *testing.T) {
	t.Parallel()
	const n, k = 205, 4 // samples and classes
	clean, transformed, label := random(n, k, 1)
	for _, perClass := range []bool{false, true} {
		for _, m := range measures(prediction.Settings{PerClass: perClass}) {
			site := measure.Site{Layout: measure.NewLayout(n), Classes: classes(k), KeepSamples: perClass}
			t.Run(fmt.Sprintf("%s/per class %v", m.Name(), perClass), func(t *testing.T) {
				t.Parallel()
				measuretest.Run(t, measuretest.Case{Measure: m, Site: site, Clean: clean, Transformed: transformed, Label: label})
			})
		}
	}
	t.Run("accuracy/without transformed samples", func(t *testing.T) {
		t.Parallel()
		site := measure.Site{Layout: measure.NewLayout(n), Classes: classes(k), KeepSamples: true}
		measuretest.Run(t, measuretest.Case{Measure: prediction.Accuracy(prediction.Settings{}), Site: site, Clean: clean, Label: label})
	})
}

// TestPairsByHand checks statistics of pairs of made-up predictions against values computed by
// hand. The paper of effective invariance, Deng et al. 2022, has the statistics of four pairs in
// figure 1, but not the predictions.
func TestPairsByHand(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name               string
		clean, transformed []float32
		ei                 float64 // effective invariance
		js, kl             float64 // Jensen-Shannon and Kullback-Leibler divergence
		l2, agree          float64 // Euclidean distance; 1 if the predicted classes agree, else 0
	}{
		{"the same, confident", logs(1, 0), logs(1, 0), 1, 0, 0, 0, 1},
		{"the same, uncertain", logs(.4, .3, .3), logs(.4, .3, .3), .4, 0, 0, 0, 1},
		// In kl a probability of 0 counts as 2^-149, the smallest positive float32.
		{"opposite", logs(1, 0), logs(0, 1), 0, math.Ln2, 149 * math.Ln2, math.Sqrt2, 0},
		{"agree, different confidence", logs(.9, .1), logs(.6, .4), math.Sqrt(.54),
			(.9*math.Log(.9/.75) + .1*math.Log(.1/.25) + .6*math.Log(.6/.75) + .4*math.Log(.4/.25)) / 2,
			.9*math.Log(1.5) + .1*math.Log(.25), math.Sqrt(.18), 1},
		{"disagree", logs(.8, .2), logs(.2, .8), 0,
			.8*math.Log(1.6) + .2*math.Log(.4), .6 * math.Log(4), math.Sqrt(.72), 0},
		{"the smallest float64 beside 0", []float32{0, -745}, logs(1, 0), 1, 0, 0, 0, 1},
		{"tie: the first class is predicted", logs(.5, .5), logs(.5, .5), .5, 0, 0, 0, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := prediction.Predict(c.clean)
			if err != nil {
				t.Fatal(err)
			}
			q, err := prediction.Predict(c.transformed)
			if err != nil {
				t.Fatal(err)
			}
			d := prediction.Diverge(c.clean, c.transformed)
			got := []float64{prediction.EI(p, q), d.JS, d.KL, d.L2, prediction.Agreement(p, q)}
			for i, want := range []float64{c.ei, c.js, c.kl, c.l2, c.agree} {
				if !(math.Abs(got[i]-want) <= 1e-6) {
					t.Errorf("statistic %d is %v, want %v", i, got[i], want)
				}
			}
		})
	}
}

func TestDivergenceProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(2, 12).Draw(t, "classes")
		logit := rapid.SliceOfN(rapid.Float32Range(-30, 30), k, k)
		p, q := logSoftmax(logit.Draw(t, "clean"), k), logSoftmax(logit.Draw(t, "transformed"), k)
		d, back := prediction.Diverge(p, q), prediction.Diverge(q, p)
		switch {
		case d.JS < 0 || d.JS > math.Ln2 || d.KL < 0 || d.L2 < 0 || d.L2 > math.Sqrt2:
			t.Fatalf("out of range: %+v", d)
		case math.Abs(d.JS-back.JS) > 1e-12 || math.Abs(d.L2-back.L2) > 1e-12:
			t.Fatalf("js and l2 of (p, q) and (q, p) differ: %+v and %+v", d, back)
		case d.JS > d.KL/2+back.KL/2+1e-6: // half the Jeffreys divergence bounds it
			t.Fatalf("js exceeds half the symmetrised kl: %+v and %+v", d, back)
		case prediction.Diverge(p, p) != prediction.Divergences{}:
			t.Fatal("the divergences of a distribution from itself are not 0")
		}
	})
}

// batch returns log-probabilities of k classes, sample by sample, as one batch.
func batch(clean, transformed []float32, label []int, k int) *measure.Batch {
	b := &measure.Batch{Label: label}
	for i := range label {
		b.Place, b.Index = append(b.Place, i), append(b.Index, i)
	}
	b.Clean, _ = tensor.From(clean, len(label), k)
	if transformed != nil {
		b.Transformed, _ = tensor.From(transformed, len(label), k)
	}
	return b
}

// TestErrors checks the errors of invalid predictions and labels. The views of a sample are x
// (clean) and T(x) (transformed).
func TestErrors(t *testing.T) {
	t.Parallel()
	nan, good := float32(math.NaN()), logs(.5, .5)
	cases := []struct {
		name               string
		measure            measure.Measure
		clean, transformed []float32
		label              int
		want               string
	}{
		{"NaN", prediction.Divergence(prediction.Settings{}), logs(.5, math.NaN()), good, 0, "NaN or infinity in the activations of sample 0 (clean view)"},
		{"NaN first", prediction.EffectiveInvariance(prediction.Settings{}), good, []float32{nan, 0}, 0, "NaN or infinity in the activations of sample 0 (transformed view)"},
		{"infinity", prediction.Accuracy(prediction.Settings{}), good, []float32{float32(math.Inf(1)), 0}, 0, "NaN or infinity in the activations of sample 0 (transformed view)"},
		{"logits", prediction.Divergence(prediction.Settings{}), []float32{2, 3}, good, 0, "sample 0: the prediction is not a distribution: its 2 probabilities add up to 27.47"},
		{"label too large", prediction.Accuracy(prediction.Settings{}), good, good, 2, "sample 0 has label 2; the model has 2 classes"},
		{"label negative", prediction.EffectiveInvariance(prediction.Settings{PerClass: true}), good, good, -3, "sample 0 has label -3"},
		{"no label", prediction.Accuracy(prediction.Settings{}), good, good, measure.NoLabel, "sample 0 has no label"},
		{"no transformed view", prediction.EffectiveInvariance(prediction.Settings{}), good, nil, 0, "no transformed view"},
		{"other classes", prediction.Divergence(prediction.Settings{}), logs(.2, .3, .5), logs(.2, .3, .5), 0, "a prediction of 3 values for a model of 2 classes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, err := c.measure.New(measure.Site{Layout: measure.NewLayout(1), Classes: classes(2)})
			if err != nil {
				t.Fatal(err)
			}
			err = a.Update(batch(c.clean, c.transformed, []int{c.label}, len(c.clean)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v does not contain %q", err, c.want)
			}
			var bad *measure.NonFinite
			if errors.As(err, &bad) != strings.HasPrefix(c.want, "NaN or infinity") {
				t.Errorf("error %v is a *NonFinite: %t, want %t", err, bad != nil, bad == nil)
			}
		})
	}
}

// TestUnlabelledSamples checks that samples without labels count in statistics that need no labels,
// and belong to no class.
func TestUnlabelledSamples(t *testing.T) {
	t.Parallel()
	a, err := prediction.EffectiveInvariance(prediction.Settings{PerClass: true}).New(measure.Site{Layout: measure.NewLayout(2), Classes: classes(2)})
	if err != nil {
		t.Fatal(err)
	}
	confident, uncertain := logs(1, 0), logs(.5, .5)
	rows := append(append([]float32{}, confident...), uncertain...)
	if err := a.Update(batch(rows, rows, []int{1, measure.NoLabel}, 2)); err != nil {
		t.Fatal(err)
	}
	scores, err := a.Scores()
	if err != nil {
		t.Fatal(err)
	}
	if len(scores) != 2 || scores[0].N != 2 || scores[1].Factor != "class=c1" || scores[1].N != 1 {
		t.Fatalf("scores %+v, want one of two samples and one of the class c1", scores)
	}
	near(t, "all", scores[0].Value, .75)
	near(t, "the labelled one", scores[1].Value, 1)
}

// TestNullOfRandomModel checks that the agreement of predictions that are unrelated to the clean
// ones is about its null, and that the agreement of an invariant model is 1.
func TestNullOfRandomModel(t *testing.T) {
	t.Parallel()
	const n, k = 4000, 10
	clean, _, label := random(n, k, 3)
	other, _, _ := random(n, k, 4)
	site := measure.Site{Layout: measure.NewLayout(n), Classes: classes(k)}
	for _, c := range []struct {
		name        string
		transformed tensor.Tensor
	}{{"invariant", clean}, {"unrelated", other}} {
		a, err := prediction.Divergence(prediction.Settings{}).New(site)
		if err != nil {
			t.Fatal(err)
		}
		// In both tensors the predicted class of sample i is mostly i mod k. Shuffling the samples of
		// one makes them unrelated.
		transformed := c.transformed
		if c.name == "unrelated" {
			transformed = transformed.Clone()
			rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) {
				for x := range k {
					p, q := i*k+x, j*k+x
					transformed.Data[p], transformed.Data[q] = transformed.Data[q], transformed.Data[p]
				}
			})
		}
		if err := a.Update(batch(clean.Data, transformed.Data, label, k)); err != nil {
			t.Fatal(err)
		}
		scores, _ := a.Scores()
		s := scores[3]
		if s.Statistic != "agreement" || s.Null > .13 {
			t.Errorf("%s: %+v, want the agreement with a null of about 0.1", c.name, s)
		}
		if c.name == "invariant" && (s.Value != 1 || s.High != 1 || s.Low < .998) {
			t.Errorf("%s: %+v, want 1", c.name, s)
		}
		if c.name == "unrelated" && math.Abs(s.Value-.1) > .02 {
			t.Errorf("%s: %+v, want about 0.1", c.name, s)
		}
	}
}

// TestCoverage checks that a 95 % interval contains the true value in about 95 % of studies. A
// transformation leaves 70 % of the predictions unchanged and swaps the two classes of the others.
// The confidence is uniform from 0.5 to 1.
func TestCoverage(t *testing.T) {
	t.Parallel()
	const studies, n = 400, 160 // n samples in each study
	covered := map[string]int{}
	r := rand.New(rand.NewPCG(5, 5))
	for range studies {
		g := golden{K: 2}
		for range n {
			g.Label = append(g.Label, 0)
			confidence := .5 + .5*r.Float64()
			g.Clean = append(g.Clean, logs(confidence, 1-confidence)...)
			if r.Float64() < .7 {
				g.Transformed = append(g.Transformed, logs(confidence, 1-confidence)...)
			} else {
				g.Transformed = append(g.Transformed, logs(1-confidence, confidence)...)
			}
		}
		site := measure.Site{Layout: measure.NewLayout(n), Classes: classes(2)}
		for _, m := range measures(prediction.Settings{}) {
			scores, err := feed(t, m, site, g).Scores()
			if err != nil {
				t.Fatal(err)
			}
			// moved is the accuracy on transformed samples, and drop how much lower it is than that
			// on clean samples, here 1, since class 0 is the label and the predicted class of all.
			truth := map[string]float64{"ei": .7 * .75, "agreement": .7, "moved": .7, "drop": .3}
			for _, s := range scores {
				if v, ok := truth[s.Statistic]; ok && s.Low <= v && v <= s.High {
					covered[s.Statistic]++
				}
			}
		}
	}
	for _, name := range []string{"ei", "agreement", "moved", "drop"} {
		if share := float64(covered[name]) / studies; share < .91 || share > .985 {
			t.Errorf("the interval of %s contains the true value in %.1f %% of studies, want about 95 %%", name, 100*share)
		}
	}
}

// TestSkip checks that models (of a site, which says what is measured) need two classes or more.
func TestSkip(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]measure.Measure{"accuracy": prediction.Accuracy(prediction.Settings{}), "agreement of models": prediction.ModelAgreement(prediction.ModelSettings{})} {
		if m.Skip(measure.Site{}) == "" || m.Skip(measure.Site{Classes: classes(1)}) == "" || m.Skip(measure.Site{Classes: classes(2)}) != "" {
			t.Errorf("%s: want a reason to skip models of no class and of one class, and none for a model of two", name)
		}
	}
}

func BenchmarkDivergence(b *testing.B) {
	for _, k := range []int{10, 1000} {
		b.Run(fmt.Sprintf("%d classes", k), func(b *testing.B) {
			clean, transformed, label := random(64, k, 1)
			batch := batch(clean.Data, transformed.Data, label, k)
			a, err := prediction.Divergence(prediction.Settings{}).New(measure.Site{Layout: measure.NewLayout(64), Classes: classes(k)})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := a.Update(batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(64*b.N)/b.Elapsed().Seconds(), "samples/s")
		})
	}
}
