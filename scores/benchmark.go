package scores

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/benchmark"
)

// A BenchmarkScore is a number of a benchmark, as its authors define it, of one model.
type BenchmarkScore struct {
	Benchmark, Data string // the name of the benchmark, and of the entry of data
	Model           string
	// Statistic is error, ce, relative-ce, mce, relative-mce, mean-error, accuracy, mean-accuracy,
	// gap, relative-robustness, flip-rate, fr, mfr, top-5-distance, t5d, mt5d, mpc or rpc.
	Statistic string
	Kind      string  // the corruption; "" for a mean over all
	Value     float64 // NaN if undefined
	// Low and High are the ends of a 95 % interval, NaN without one. The data sets of a benchmark are
	// of the same images, so that their errors may go together fully: half-widths are added up, and
	// the interval is at most too wide.
	Low, High float64
	Null      float64 // what a guess gives, or for flips frames of different sequences; NaN: not known
	N         int     // images of a data set, the smallest number
	// Own reports whether the corruptions were computed by this program, and the number is not one of
	// the published images.
	Own bool
	// Missing says which data sets and images of the published protocol the number lacks; "" for none.
	Missing string
}

// A bounded is a value with the half-widths of its interval, and its null.
type bounded struct{ value, below, above, null float64 }

func boundedOf(r Row, null float64) bounded {
	return bounded{r.Value, r.Value - r.Low, r.High - r.Value, null}
}

// fixed returns a value without an interval, which the null has too.
func fixed(v float64) bounded { return bounded{value: v, null: v} }

// complement returns 1 - b.
func (b bounded) complement() bounded {
	return bounded{1 - b.value, b.above, b.below, 1 - b.null}
}

func (b bounded) minus(o bounded) bounded {
	return bounded{b.value - o.value, b.below + o.above, b.above + o.below, b.null - o.null}
}

// ratio returns b / o, with the interval to first order. o is positive.
func (b bounded) ratio(o bounded) bounded {
	q := b.value / o.value
	return bounded{q, (b.below + q*o.above) / o.value, (b.above + q*o.below) / o.value, b.null / o.null}
}

// over returns b / o for a null that the divisor does not share.
func (b bounded) over(o bounded) bounded {
	o.null = o.value
	return b.ratio(o)
}

func meanOf(all []bounded) bounded {
	var out bounded
	for _, b := range all {
		n := float64(len(all))
		out.value, out.below, out.above, out.null = out.value+b.value/n, out.below+b.below/n, out.above+b.above/n, out.null+b.null/n
	}
	return out
}

// Benchmarks returns the numbers of the benchmarks of a run, for each entry of data and model in the
// order of the rows: the means first.
func Benchmarks(rows []Row, rec Record) ([]BenchmarkScore, error) {
	return BenchmarksRelativeTo("", rows, rec)
}

// BenchmarksRelativeTo is Benchmarks with the scores of a model of the run in place of the published
// ones of AlexNet as the divisors of mCE, mFR and the like. They then exist for every benchmark of
// corruptions, and the mT5D of ImageNet-P, of which no published ones are known here.
func BenchmarksRelativeTo(reference string, rows []Row, rec Record) ([]BenchmarkScore, error) {
	sets := map[string]BenchmarkRecord{}
	for _, d := range rec.Data {
		if d.Benchmark != nil {
			sets[d.Name] = *d.Benchmark
		}
	}
	type group struct{ benchmark, data, model string }
	var order []group
	tables := map[group]*benchmarkTable{}
	for _, r := range rows {
		set, ok := sets[r.Data]
		if !ok {
			continue
		}
		known, err := benchmark.Find(set.Name)
		if err != nil {
			return nil, fmt.Errorf("data %s: %w", r.Data, err)
		}
		isDistance, ok := isScoreOf(known, set, r)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(r.Data, "/")
		g := group{set.Name, name, r.Model}
		t := tables[g]
		if t == nil {
			t = &benchmarkTable{known: known, rows: map[benchmarkCell]Row{}, n: math.MaxInt}
			tables[g] = t
			order = append(order, g)
		}
		t.rows[benchmarkCell{set.Kind, set.Severity, isDistance}] = r
		if set.Kind != benchmark.Clean {
			t.n, t.own = min(t.n, r.N), t.own || set.Own
		}
	}
	if len(sets) > 0 && len(order) == 0 {
		return nil, errors.New("the run has data of a benchmark, and no scores of the measure that it takes: add accuracy to its measures, of imagenet-p flip-rate, of coco-c dense-accuracy")
	}
	var out []BenchmarkScore
	for _, g := range order {
		t := tables[g]
		t.fill()
	}
	for _, g := range order {
		t := tables[g]
		t.divisors = publishedDivisors(t.known)
		if reference != "" {
			of := tables[group{g.benchmark, g.data, reference}]
			if of == nil {
				return nil, fmt.Errorf("the run has no scores of a model %q on %s, which the numbers are to be relative to", reference, g.data)
			}
			t.divisors = of.asDivisors()
		}
		for _, s := range t.scores() {
			s.Benchmark, s.Data, s.Model, s.N = g.benchmark, g.data, g.model, t.n
			s.Own = t.own && !strings.HasPrefix(s.Statistic, "clean-")
			if s.N == math.MaxInt { // of the clean data alone
				s.N = t.rows[benchmarkCell{benchmark.Clean, 0, false}].N
			}
			out = append(out, s)
		}
	}
	return out, nil
}

// isScoreOf reports whether a row is the score of a data set of a benchmark. Of sequences there are
// two: the flip rate and the top-5 distance.
func isScoreOf(known benchmark.Benchmark, set BenchmarkRecord, r Row) (isDistance, ok bool) {
	if r.Measure != known.Measure || r.Variant != "" || r.Factor != "" || r.OtherModel != "" {
		return false, false
	}
	if known.Layout != benchmark.Sequences {
		return false, r.Statistic == known.Statistic
	}
	suffix := ""
	if k, _ := known.Kind(set.Kind); k.FromFirst() {
		suffix = "-first"
	}
	isDistance = r.Statistic == "top-5-distance"+suffix
	return isDistance, isDistance || r.Statistic == known.Statistic+suffix
}

type benchmarkCell struct {
	kind       string
	severity   int
	isDistance bool
}

// A benchmarkTable holds the scores of a model on the data sets of a benchmark.
type benchmarkTable struct {
	known     benchmark.Benchmark
	rows      map[benchmarkCell]Row
	kinds     []benchmark.Kind // with a score
	means     []bounded        // of each, the mean accuracy, precision or flip rate over severities
	distances []bounded        // of sequences, the top-5 distance of each
	missing   []string         // kinds, severities and images of the published mean
	clean     *bounded         // nil: not measured
	divisors  divisors
	n         int
	own       bool
}

// divisors are the scores of a reference, by kind; empty: there is none.
type divisors struct {
	errors, distances map[string]bounded
	clean             *bounded // its error without a corruption
}

func publishedDivisors(known benchmark.Benchmark) divisors {
	out := divisors{errors: map[string]bounded{}}
	for _, k := range known.Kinds {
		if k.Reference > 0 {
			out.errors[k.Name] = fixed(k.Reference)
		}
	}
	if known.CleanReference > 0 {
		clean := fixed(known.CleanReference)
		out.clean = &clean
	}
	return out
}

// asDivisors returns the scores of a table as those of a reference.
func (t *benchmarkTable) asDivisors() divisors {
	out := divisors{errors: map[string]bounded{}, distances: map[string]bounded{}}
	if t.known.Layout == benchmark.Single || t.known.Layout == benchmark.COCO {
		return out
	}
	for i, k := range t.kinds {
		out.errors[k.Name] = t.fault(i)
		if t.distances != nil {
			out.distances[k.Name] = t.distances[i]
		}
	}
	if t.clean != nil {
		clean := t.clean.complement()
		out.clean = &clean
	}
	return out
}

// fault returns what is divided: the error under a kind, or the flip rate.
func (t *benchmarkTable) fault(i int) bounded {
	if t.known.Layout == benchmark.Sequences {
		return t.means[i]
	}
	return t.means[i].complement()
}

// fill computes the means over severities from the rows.
func (t *benchmarkTable) fill() {
	of := func(r Row) bounded {
		if t.known.Chance > 0 {
			return boundedOf(r, t.known.Chance)
		}
		return boundedOf(r, r.Null)
	}
	for _, k := range t.known.Kinds {
		var values, distances []bounded
		for _, severity := range t.known.Severities {
			if r, ok := t.rows[benchmarkCell{k.Name, severity, false}]; ok {
				values = append(values, of(r))
			}
			if r, ok := t.rows[benchmarkCell{k.Name, severity, true}]; ok {
				distances = append(distances, of(r))
			}
		}
		if len(values) > 0 {
			t.kinds, t.means = append(t.kinds, k), append(t.means, meanOf(values))
			if t.known.Layout == benchmark.Sequences {
				t.distances = append(t.distances, meanOf(distances))
			}
		}
		switch all := len(t.known.Severities); {
		case k.Extra:
		case len(values) == 0:
			t.missing = append(t.missing, k.Name)
		case len(values) < all:
			t.missing = append(t.missing, fmt.Sprintf("%d severities of %s", all-len(values), k.Name))
		}
	}
	if r, ok := t.rows[benchmarkCell{benchmark.Clean, 0, false}]; ok {
		clean := of(r)
		t.clean = &clean
	}
	if t.n < t.known.Images {
		what := "images"
		if t.known.Layout == benchmark.Sequences {
			what = "videos"
		}
		t.missing = append(t.missing, fmt.Sprintf("%d of %d %s", t.known.Images-t.n, t.known.Images, what))
	}
}

// scores returns the means, then the numbers of each kind. Kinds and severities that are missing
// are left out of the means, and named.
func (t *benchmarkTable) scores() []BenchmarkScore {
	var means, each []BenchmarkScore
	score := func(statistic, kind string, b bounded) BenchmarkScore {
		s := BenchmarkScore{Statistic: statistic, Kind: kind, Value: b.value, Low: b.value - b.below, High: b.value + b.above, Null: b.null}
		if kind == "" {
			s.Missing = strings.Join(t.missing, ", ")
		}
		return s
	}
	layout := t.known.Layout
	perKind := map[benchmark.Layout]string{benchmark.COCO: "precision", benchmark.Sequences: "flip-rate", benchmark.Folders: "error", benchmark.Stacked: "error"}[layout]
	ratio, relativeRatio := "ce", "relative-ce"
	if layout == benchmark.Sequences {
		ratio = "fr"
	}
	var standard []bounded // of the kinds of the published mean
	var ratios, relative, distances, distanceRatios []bounded
	for i, k := range t.kinds {
		fault := t.fault(i)
		switch layout {
		case benchmark.COCO:
			each = append(each, score(perKind, k.Name, t.means[i]))
		case benchmark.Single:
		default:
			each = append(each, score(perKind, k.Name, fault))
		}
		add := func(to *[]bounded, statistic string, b bounded) {
			each = append(each, score(statistic, k.Name, b))
			if !k.Extra {
				*to = append(*to, b)
			}
		}
		if by, ok := t.divisors.errors[k.Name]; ok {
			add(&ratios, ratio, fault.over(by))
			if t.clean != nil && t.divisors.clean != nil {
				add(&relative, relativeRatio, fault.minus(t.clean.complement()).over(by.minus(*t.divisors.clean)))
			}
		}
		if layout == benchmark.Sequences {
			add(&distances, "top-5-distance", t.distances[i])
			if by, ok := t.divisors.distances[k.Name]; ok {
				add(&distanceRatios, "t5d", t.distances[i].over(by))
			}
		}
		if !k.Extra {
			standard = append(standard, t.means[i])
		}
	}
	if len(standard) == 0 {
		return each
	}
	mean := meanOf(standard)
	add := func(statistic string, of []bounded) {
		if len(of) == len(standard) {
			means = append(means, score(statistic, "", meanOf(of)))
		}
	}
	switch layout {
	case benchmark.COCO:
		means = append(means, score("mpc", "", mean))
		if t.clean != nil {
			means = append(means, score("clean-precision", "", *t.clean), score("rpc", "", mean.ratio(*t.clean)))
		}
		return slices.Concat(means, each)
	case benchmark.Sequences:
		add("mfr", ratios)
		add("mt5d", distanceRatios)
		means = append(means, score("mean-flip-rate", "", mean))
		add("mean-top-5-distance", distances)
		return slices.Concat(means, each)
	case benchmark.Single:
		means = append(means, score("accuracy", "", mean))
	default:
		add("mce", ratios)
		add("relative-mce", relative)
		if t.known.Mean { // published as an accuracy
			means = append(means, score("mean-accuracy", "", mean))
		}
		means = append(means, score("mean-error", "", mean.complement()))
	}
	if t.clean != nil {
		means = append(means, score("clean-accuracy", "", *t.clean), score("gap", "", t.clean.minus(mean)), score("relative-robustness", "", mean.ratio(*t.clean)))
	}
	return slices.Concat(means, each)
}
