package mlflow

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Metric is one value of a metric at a step.
type Metric struct {
	Key   string  `json:"key"`
	Value float64 `json:"value"`
	Time  int64   `json:"timestamp"` // milliseconds since 1970
	Step  int64   `json:"step"`
}

type pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Log logs parameters, tags and metrics. It leaves out values that are not finite, which JSON
// cannot represent. Names that become equal by the replacement of characters get a number as
// suffix.
func (r *Run) Log(ctx context.Context, params, tags map[string]string, metrics []Metric) error {
	ps, ts := pairs(params), pairs(tags)
	ms := named(metrics)
	for len(ps)+len(ts)+len(ms) > 0 {
		b := batch{Run: r.ID}
		size := 200
		ps = fill(&b.Params, ps, mostParams, &size, b.items)
		ts = fill(&b.Tags, ts, mostParams, &size, b.items)
		for len(ms) > 0 && b.items() < mostItems && size < mostBytes {
			b.Metrics, ms, size = append(b.Metrics, ms[0]), ms[1:], size+2*len(ms[0].Key)+120
		}
		if err := r.client.call(ctx, http.MethodPost, "runs/log-batch", b, nil); err != nil {
			return err
		}
	}
	return nil
}

type batch struct {
	Run     string   `json:"run_id"`
	Metrics []Metric `json:"metrics,omitempty"`
	Params  []pair   `json:"params,omitempty"`
	Tags    []pair   `json:"tags,omitempty"`
}

func (b *batch) items() int { return len(b.Metrics) + len(b.Params) + len(b.Tags) }

// fill moves pairs into a batch until it is full, and returns the rest.
func fill(to *[]pair, from []pair, most int, size *int, items func() int) []pair {
	for len(from) > 0 && len(*to) < most && items() < mostItems && *size < mostBytes {
		*size += 6*len(from[0].Value) + 2*len(from[0].Key) + 40 // at worst each byte is escaped
		*to, from = append(*to, from[0]), from[1:]
	}
	return from
}

func pairs(values map[string]string) []pair {
	n := namer{}
	var out []pair
	for _, k := range slices.Sorted(maps.Keys(values)) {
		out = append(out, pair{n.name(k), cut(values[k], longestText)})
	}
	return out
}

func named(metrics []Metric) []Metric {
	n := namer{}
	var out []Metric
	for _, m := range metrics {
		if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
			continue
		}
		m.Key = n.name(m.Key)
		out = append(out, m)
	}
	return out
}

// A namer maps different keys to different names.
type namer struct {
	of    map[string]string
	taken map[string]bool
}

func (n *namer) name(key string) string {
	if n.of == nil {
		n.of, n.taken = map[string]string{}, map[string]bool{}
	}
	if name, known := n.of[key]; known {
		return name
	}
	name := paramName(key)
	for i := 2; n.taken[name]; i++ {
		name = fmt.Sprintf("%s-%d", cut(paramName(key), longestName-8), i)
	}
	n.of[key], n.taken[name] = name, true
	return name
}

// paramName returns a key in the characters that the interface allows: letters, digits, "_", "-", ".", "
// " and "/", as a clean relative path.
func paramName(key string) string {
	allowed := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-. /", r):
			return r
		}
		return '_'
	}
	name := path.Clean("/" + strings.Map(allowed, key))[1:]
	name = path.Clean("/" + cut(name, longestName))[1:] // the cut may have left a dot or a slash at its end
	if name == "" {
		return "_"
	}
	return name
}

// cut truncates text to at most n bytes at a character boundary.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
