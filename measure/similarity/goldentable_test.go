package similarity

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// arrayKinds are the kinds of arrays, n x p values, for which each statistic is compared with
// values of other programs. Every array is of float32; the tests of golden values also read it as
// float64.
var arrayKinds = []struct {
	name string
	is   func(values []float32, n, p int) bool
}{
	{"n > p", func(_ []float32, n, p int) bool { return n > p }},
	{"n < p", func(_ []float32, n, p int) bool { return n < p }},
	{"equal rows", func(values []float32, n, p int) bool {
		seen := map[string]bool{}
		for i := range n {
			seen[fmt.Sprint(values[i*p:(i+1)*p])] = true
		}
		return len(seen) < n
	}},
	{"constant columns", func(values []float32, n, p int) bool { return slices.Min(columnDeviations(values, n, p)) == 0 }},
	{"scales 1,000 times apart", func(values []float32, n, p int) bool {
		d := slices.DeleteFunc(columnDeviations(values, n, p), func(v float64) bool { return v == 0 })
		return len(d) > 0 && slices.Max(d) >= 1000*slices.Min(d)
	}},
	{"float32", func([]float32, int, int) bool { return true }},
}

// columnDeviations returns the standard deviation of each column of n x p values.
func columnDeviations(values []float32, n, p int) []float64 {
	out := make([]float64, p)
	for j := range p {
		var mean, squares float64
		for i := range n {
			mean += float64(values[i*p+j]) / float64(n)
		}
		for i := range n {
			d := float64(values[i*p+j]) - mean
			squares += d * d
		}
		out[j] = math.Sqrt(squares / float64(n))
	}
	return out
}

// TestGoldenTable checks that every statistic, also those of geometry, is compared with another
// program on every kind of array. The files of testdata hold the values: golden.json, list.json,
// more.json and spectra.json those of Python programs that compute the definitions of the
// statistics by other methods ("definition" in the table), programs.json those of published
// programs such as ReSi. With -v it prints the table. golden, plsAndGeometry and programValues are
// in golden_test.go, geometry_test.go and programs_test.go.
func TestGoldenTable(t *testing.T) {
	t.Parallel()
	read := func(file string, to any) {
		t.Helper()
		raw, err := os.ReadFile("testdata/" + file + ".json")
		if err == nil {
			err = json.Unmarshal(raw, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var list []struct {
		golden
		Variants []struct{ Values map[string]float64 }
	}
	var more []plsAndGeometry
	var published map[string]map[string]*float64 // case, program and its name of the statistic
	read("list", &list)
	read("more", &more)
	read("programs", &published)
	table := map[string]map[string][]string{} // statistic, kind of array, programs
	// add records that a program gave values of a statistic for the arrays of a case: X, and Y if
	// both.
	add := func(statistic, program string, g golden, both bool) {
		if table[statistic] == nil {
			table[statistic] = map[string][]string{}
		}
		for _, k := range arrayKinds {
			if k.is(g.X, g.N, g.P) || both && k.is(g.Y, g.N, g.Q) {
				if programs := table[statistic][k.name]; !slices.Contains(programs, program) {
					table[statistic][k.name] = append(programs, program)
				}
			}
		}
	}
	for _, g := range goldens(t) {
		for statistic := range g.Values {
			add(statistic, "definition", g, true)
		}
	}
	known := programValues() // by program and its name of the statistic; except: cases not compared
	for i, c := range list {
		for _, v := range c.Variants {
			for statistic := range v.Values {
				add(statistic, "definition", c.golden, true)
			}
		}
		for statistic := range more[i].Geometry {
			add(statistic, "definition", c.golden, false)
		}
		if len(more[i].PLS) > 0 {
			add(PLSPredictivity, "definition", c.golden, true)
		}
		for name := range published[c.Name] {
			if k, ok := known[name]; ok && !slices.Contains(k.except, c.Name) {
				add(k.statistic, strings.Fields(name)[0], c.golden, true)
			}
		}
	}
	var spectra []golden
	read("spectra", &spectra)
	for _, c := range spectra {
		add(AlphaReQ, "definition", c, false)
	}
	names := Names()
	for _, k := range geometryStatistics() {
		names = append(names, k.name)
	}
	out := "\n| statistic |"
	for _, k := range arrayKinds {
		out += " " + k.name + " |"
	}
	for _, name := range names {
		out += "\n| " + name + " |"
		for _, k := range arrayKinds {
			compared := table[name][k.name]
			if len(compared) == 0 {
				t.Errorf("%s is compared with no other program on arrays of the kind %q", name, k.name)
			}
			slices.Sort(compared)
			out += " " + strings.Join(compared, ", ") + " |"
		}
	}
	t.Log(out)
}
