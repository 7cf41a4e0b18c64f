package scores

import (
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
	// Statistic is error, ce, relative-ce, mce, relative-mce, mean-error, accuracy, gap,
	// relative-robustness, mpc or rpc.
	Statistic string
	Kind      string  // the corruption; "" for a mean over all
	Value     float64 // NaN if undefined
	// Low and High are the ends of a 95 % interval, NaN without one. The data sets of a benchmark are
	// of the same images, so that their errors may go together fully: half-widths are added up, and
	// the interval is at most too wide.
	Low, High float64
	N         int // images of a data set, the smallest number
	// Own reports whether the corruptions were computed by this program, and the number is not one of
	// the published images.
	Own bool
	// Missing says which data sets of the published protocol the number lacks; "" for none.
	Missing string
}

// A bounded is a value with the half-widths of its interval.
type bounded struct{ value, below, above float64 }

func boundedOf(r Row) bounded { return bounded{r.Value, r.Value - r.Low, r.High - r.Value} }

// complement returns 1 - b.
func (b bounded) complement() bounded { return bounded{1 - b.value, b.above, b.below} }

func (b bounded) minus(o bounded) bounded {
	return bounded{b.value - o.value, b.below + o.above, b.above + o.below}
}

func (b bounded) over(divisor float64) bounded {
	return bounded{b.value / divisor, b.below / divisor, b.above / divisor}
}

// ratio returns b / o, with the interval to first order.
func (b bounded) ratio(o bounded) bounded {
	q := b.value / o.value
	return bounded{q, (b.below + q*o.above) / o.value, (b.above + q*o.below) / o.value}
}

func meanOf(all []bounded) bounded {
	var out bounded
	for _, b := range all {
		n := float64(len(all))
		out.value, out.below, out.above = out.value+b.value/n, out.below+b.below/n, out.above+b.above/n
	}
	return out
}

// Benchmarks returns the numbers of the benchmarks of a run, for each entry of data and model in the
// order of the rows: the means first.
func Benchmarks(rows []Row, rec Record) ([]BenchmarkScore, error) {
	sets := map[string]BenchmarkRecord{}
	for _, d := range rec.Data {
		if d.Benchmark != nil {
			sets[d.Name] = *d.Benchmark
		}
	}
	type group struct{ benchmark, data, model string }
	type cell struct {
		kind     string
		severity int
	}
	var order []group
	found := map[group]map[cell]Row{}
	for _, r := range rows {
		set, ok := sets[r.Data]
		if !ok {
			continue
		}
		known, err := benchmark.Find(set.Name)
		if err != nil {
			return nil, fmt.Errorf("data %s: %w", r.Data, err)
		}
		if r.Measure != known.Measure || r.Statistic != known.Statistic || r.Variant != "" || r.Factor != "" || r.OtherModel != "" {
			continue
		}
		name, _, _ := strings.Cut(r.Data, "/")
		g := group{set.Name, name, r.Model}
		if found[g] == nil {
			found[g] = map[cell]Row{}
			order = append(order, g)
		}
		found[g][cell{set.Kind, set.Severity}] = r
	}
	if len(sets) > 0 && len(order) == 0 {
		return nil, fmt.Errorf("the run has data of a benchmark, and no scores of accuracy: add accuracy (of coco-c: dense-accuracy) to its measures")
	}
	var out []BenchmarkScore
	for _, g := range order {
		known, err := benchmark.Find(g.benchmark)
		if err != nil {
			return nil, err
		}
		table := benchmarkTable{known: known, n: math.MaxInt}
		for _, k := range known.Kinds {
			var rows []bounded
			for _, severity := range known.Severities {
				r, ok := found[g][cell{k.Name, severity}]
				if !ok {
					continue
				}
				rows = append(rows, boundedOf(r))
				table.n = min(table.n, r.N)
				table.own = table.own || sets[r.Data].Own
			}
			table.add(k, rows)
		}
		if r, ok := found[g][cell{benchmark.Clean, 0}]; ok {
			clean := boundedOf(r)
			table.clean = &clean
		}
		for _, s := range table.scores() {
			s.Benchmark, s.Data, s.Model, s.Own = g.benchmark, g.data, g.model, table.own
			if s.N == 0 {
				s.N = table.n
			}
			out = append(out, s)
		}
	}
	return out, nil
}

// A benchmarkTable holds the scores of a model on the data sets of a benchmark.
type benchmarkTable struct {
	known   benchmark.Benchmark
	kinds   []benchmark.Kind // with a score
	means   []bounded        // of each, the mean accuracy or precision over severities
	missing []string         // kinds and severities of the published mean
	clean   *bounded         // nil: not measured
	n       int
	own     bool
}

func (t *benchmarkTable) add(k benchmark.Kind, severities []bounded) {
	if len(severities) > 0 {
		t.kinds, t.means = append(t.kinds, k), append(t.means, meanOf(severities))
	}
	switch all := len(t.known.Severities); {
	case k.Extra:
	case len(severities) == 0:
		t.missing = append(t.missing, k.Name)
	case len(severities) < all:
		t.missing = append(t.missing, fmt.Sprintf("%d severities of %s", all-len(severities), k.Name))
	}
}

// scores returns the means, then the numbers of each kind. Kinds and severities that are missing
// are left out of the means, and named.
func (t *benchmarkTable) scores() []BenchmarkScore {
	var means, each []BenchmarkScore
	score := func(statistic, kind string, b bounded) BenchmarkScore {
		s := BenchmarkScore{Statistic: statistic, Kind: kind, Value: b.value, Low: b.value - b.below, High: b.value + b.above}
		if kind == "" {
			s.Missing = strings.Join(t.missing, ", ")
		}
		return s
	}
	var standard []bounded // of the kinds of the published mean
	var errors, relative []bounded
	for i, k := range t.kinds {
		if t.known.Layout == benchmark.COCO {
			each = append(each, score("precision", k.Name, t.means[i]))
		} else if t.known.Layout != benchmark.Single {
			each = append(each, score("error", k.Name, t.means[i].complement()))
		}
		var ce, rce bounded
		if fault := t.means[i].complement(); k.Reference > 0 {
			ce = fault.over(k.Reference)
			each = append(each, score("ce", k.Name, ce))
			if t.clean != nil {
				rce = fault.minus(t.clean.complement()).over(k.Reference - t.known.CleanReference)
				each = append(each, score("relative-ce", k.Name, rce))
			}
		}
		if !k.Extra {
			standard, errors, relative = append(standard, t.means[i]), append(errors, ce), append(relative, rce)
		}
	}
	if len(standard) == 0 {
		return each
	}
	mean := meanOf(standard)
	switch {
	case t.known.Layout == benchmark.COCO:
		means = append(means, score("mpc", "", mean))
		if t.clean != nil {
			means = append(means, score("clean-precision", "", *t.clean), score("rpc", "", mean.ratio(*t.clean)))
		}
		return slices.Concat(means, each)
	case t.known.Layout == benchmark.Single:
		means = append(means, score("accuracy", "", mean))
	case t.known.Reference != "":
		means = append(means, score("mce", "", meanOf(errors)))
		if t.clean != nil {
			means = append(means, score("relative-mce", "", meanOf(relative)))
		}
		fallthrough
	default:
		means = append(means, score("mean-error", "", mean.complement()))
	}
	if t.clean != nil {
		means = append(means, score("clean-accuracy", "", *t.clean), score("gap", "", t.clean.minus(mean)), score("relative-robustness", "", mean.ratio(*t.clean)))
	}
	return slices.Concat(means, each)
}
