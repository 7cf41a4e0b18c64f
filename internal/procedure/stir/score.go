package stir

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/measure/similarity"
	"github.com/noether-ml/noether/tensor"
)

func (r *run) modelSimilarity(ctx context.Context) ([]measure.PairScore, error) {
	var out []measure.PairScore
	for _, p := range r.job.Pairs {
		found, err := r.similarity(ctx, r.a.layers[p[0]], r.b.layers[p[1]])
		if err != nil {
			return nil, fmt.Errorf("similarity of layers %q and %q: %w", r.job.A.Layers[p[0]].Name, r.job.B.Layers[p[1]].Name, err)
		}
		for _, s := range found {
			s.Variant, s.Statistic = s.Statistic, "similarity"
			if s.Variant == similarity.LinearCKA {
				s.Variant, s.Statistic = "", "cka"
			}
			out = append(out, measure.PairScore{A: p[0], B: p[1], Score: s})
		}
	}
	return out, nil
}

func (r *run) similarity(ctx context.Context, x, y tensor.Tensor) ([]measure.Score, error) {
	a, err := similarity.Of(x.Data, x.Shape[0], x.Shape[1])
	if err != nil {
		return nil, err
	}
	b, err := similarity.Of(y.Data, y.Shape[0], y.Shape[1])
	if err != nil {
		return nil, err
	}
	o := similarity.Options{Settings: similarity.Defaults(), Memory: r.job.Memory, Names: [2]string{"X", "X'"}}
	o.Statistics = r.settings.Similarity
	o.Seed = seed.Rand(r.job.Key.Seed, "stir: similarity", r.job.Key.Data, r.job.Key.Trial).Uint64()
	return similarity.Compare(ctx, a, b, o)
}

// score scores an inversion, running both models on x'. For a Controversial one x and x' are not
// compared: it starts near x and moves away in the other model.
func (r *run) score(ctx context.Context, v inversion, found *invert.Result) ([]measure.PairScore, error) {
	rows, warnings := r.rows(found)
	if len(rows) < 2 {
		return nil, fmt.Errorf("%w: the loss of %d of %d images became NaN or infinite", measure.ErrTooFew, len(found.Dropped), len(r.samples))
	}
	a, b, err := r.runModels(ctx, selectRows(found.Images, rows))
	if err != nil {
		return nil, err
	}
	finite, err := r.finiteRows(len(rows), a, b)
	if err != nil {
		return nil, fmt.Errorf("on the inverted images: %w", err)
	}
	if omitted := len(rows) - len(finite); omitted > 0 {
		warnings = append(warnings, fmt.Sprintf("%d of %d images are left out: a model gives NaN or infinity for the inverted image", omitted, len(r.samples)))
		a, b = a.selectRows(finite), b.selectRows(finite)
		for i, k := range finite {
			finite[i] = rows[k]
		}
		rows = finite
	}
	common := r.inversionScores(v, rows, selectRows(found.Images, rows), a, b)
	for i := range common {
		common[i].Warnings = append(common[i].Warnings, warnings...)
	}
	missed := r.missedWarnings(common)
	var out []measure.PairScore
	for _, p := range v.pairs {
		if v.kind != Controversial {
			similar, err := r.similarity(ctx, selectRows(r.b.layers[p[1]], rows), b.layers[p[1]])
			if err != nil {
				return nil, fmt.Errorf("similarity of layer %q of %s on x and x': %w", r.job.B.Layers[p[1]].Name, r.job.B.Name, err)
			}
			for _, s := range similar {
				s.Variant, s.Statistic = s.Statistic, statistic(v.kind)
				if s.Variant == similarity.LinearCKA {
					s.Variant = ""
				}
				s.Warnings = append(append(s.Warnings, warnings...), missed...)
				out = append(out, measure.PairScore{A: p[0], B: p[1], Score: s})
			}
		}
		for _, s := range common {
			out = append(out, measure.PairScore{A: p[0], B: p[1], Score: s})
		}
	}
	return out, nil
}

func statistic(kind string) string {
	if kind == Adversarial { // x' also differs in the other model's representation
		return "stir-adversarial"
	}
	return "stir"
}

// rows returns the samples that the search did not drop because their loss was not finite, and a
// warning about the others.
func (r *run) rows(found *invert.Result) (rows []int, warnings []string) {
	dropped := map[int]bool{}
	for _, i := range found.Dropped {
		dropped[i] = true
	}
	for i := range r.samples {
		if !dropped[i] {
			rows = append(rows, i)
		}
	}
	if n := len(found.Dropped); n > 0 {
		warnings = append(warnings, droppedWarning("their loss became NaN or infinite", len(r.samples), n, r.samples[found.Dropped[0]].Name))
	}
	return rows, warnings
}

func selectRows(t tensor.Tensor, rows []int) tensor.Tensor {
	if len(rows) == t.Shape[0] {
		return t
	}
	out := tensor.New(append([]int{len(rows)}, t.Shape[1:]...)...)
	for i, row := range rows {
		copy(out.At(i).Data, t.At(row).Data)
	}
	return out
}

// inversionScores returns distances, the fraction missed (beyond delta, relative to the norm) and
// the agreement of predictions. v.a is the index of the matched layer. images are x' of the samples
// rows, a and b the responses to them.
func (r *run) inversionScores(v inversion, rows []int, images tensor.Tensor, a, b *responses) []measure.Score {
	variant := "" // of the default kind, which starts from noise and uses the reference model only
	if v.kind != Arbitrary {
		variant = v.kind
	}
	relative, input, missed := make([]float64, len(rows)), make([]float64, len(rows)), make([]float64, len(rows))
	for i, row := range rows {
		relative[i] = ratio(tensor.Distance(a.layers[v.a].At(i).Data, r.a.layers[v.a].At(row).Data), tensor.Norm(r.a.layers[v.a].At(row).Data))
		input[i] = tensor.Distance(images.At(i).Data, r.x.At(row).Data)
		missed[i] = indicator(relative[i] > r.settings.Delta)
	}
	scores := []measure.Score{
		mean("representation-distance", relative, math.Inf(1)),
		proportion("missed", missed),
		mean("input-distance", input, math.Inf(1)),
	}
	if r.sameClasses() {
		agree := make([]float64, len(rows))
		for i := range agree {
			agree[i] = indicator(a.class[i] == b.class[i])
		}
		scores = append(scores, proportion("agreement", agree))
	}
	for i := range scores {
		scores[i].Variant = variant
	}
	return scores
}

// sameClasses compares numbers of classes; nil Outputs are all.
func (r *run) sameClasses() bool {
	count := func(all int, selected []int) int {
		if selected != nil {
			return len(selected)
		}
		return all
	}
	a, b := count(r.job.A.Model.Classes(), r.job.A.Outputs), count(r.job.B.Model.Classes(), r.job.B.Outputs)
	return a == b && r.a.class != nil && r.b.class != nil
}

// common is the result of inversionScores, in which the second score is the fraction missed.
func (r *run) missedWarnings(common []measure.Score) []string {
	fraction := common[1].Value
	if fraction == 0 {
		return nil
	}
	remedy := "take more steps"
	if r.settings.Optimiser != string(invert.Adam) {
		remedy += ", or optimiser adam"
	}
	return []string{fmt.Sprintf("%.3g %% of the images did not get within %v of the reference model's representation (relative distance): %s", 100*fraction, r.settings.Delta, remedy)}
}

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// ratio returns d / norm, or 0 if d is 0.
func ratio(d, norm float64) float64 {
	if d == 0 {
		return 0
	}
	return d / norm
}

func mean(statistic string, v []float64, high float64) measure.Score {
	s := measure.Plain(statistic, stat.Mean(v, nil), len(v))
	s.Min, s.Max = 0, high
	if math.IsInf(s.Value, 0) {
		s.Value = math.NaN()
		s.Warnings = append(s.Warnings, "the representation of an image is zero, so the relative distance to it is infinite")
		return s
	}
	s.Replicates = resample.MeanWithoutGroups(v)
	if low, top := resample.Jackknife(s.Value, len(v), s.Replicates); !math.IsNaN(low) {
		s.Low, s.High = max(low, 0), min(top, high)
		if skewed(v) {
			s.Warnings = append(s.Warnings, skewedWarning)
		}
	}
	return s
}

// skewedWarning is the warning of intervals of means of few, skewed values.
const skewedWarning = "the interval may be too narrow: few images have most of the distance"

// skewed reports whether values are too few for an interval of their mean by Student's t: fewer
// than 25 times the squared skewness (Cochran 1977, section 2.15).
func skewed(v []float64) bool {
	skewness := stat.Skew(v, nil)
	return float64(len(v)) < 25*skewness*skewness
}

func proportion(statistic string, v []float64) measure.Score {
	s := mean(statistic, v, 1)
	s.Low, s.High = resample.Wilson(s.Value, len(v))
	s.Warnings = nil // Wilson's interval holds for skewed proportions
	return s
}
