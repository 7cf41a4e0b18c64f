package probe

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
)

// codesDefaults returns the default settings.
func codesDefaults() CodesSettings {
	return CodesSettings{Bins: 20, Neighbours: 10, Lasso: 0.02, Train: 0.67, Representation: Representation{Pool: "mean"}}
}

// A codesGolden holds the golden values of testdata/codes.py.
type codesGolden struct {
	Codes []struct {
		Vectors [][]float64
		Factors []struct {
			Categorical bool
			Values      []float64
		}
		Values map[string]float64
	}
	LiDAR []struct {
		Versions int
		Samples  [][]float32
		Value    float64
	}
}

func readCodesGolden(t *testing.T) (out codesGolden) {
	t.Helper()
	raw, err := os.ReadFile("testdata/codes.json")
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCodesGolden compares with scikit-learn, see testdata/codes.py.
func TestCodesGolden(t *testing.T) {
	t.Parallel()
	settings := codesDefaults()
	for i, c := range readCodesGolden(t).Codes {
		g := rand.New(rand.NewPCG(1, 1))
		table := &codeTable{settings: &settings, vectors: c.Vectors, shuffle: g.Perm(len(c.Vectors))}
		for _, f := range c.Factors {
			table.factors = append(table.factors, codeFactor{name: string(rune('a' + len(table.factors))), categorical: f.Categorical, value: f.Values})
		}
		scores, err := table.scores(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scores {
			if want := c.Values[s.Statistic]; math.Abs(s.Value-want) > 1e-6 {
				t.Errorf("case %d: %s is %.9f, want %.9f", i, s.Statistic, s.Value, want)
			}
			if !(s.Low <= s.Value && s.Value <= s.High) || s.Low == s.High || math.IsNaN(s.Null) {
				t.Errorf("case %d: %s is %v in [%v, %v], null %v", i, s.Statistic, s.Value, s.Low, s.High, s.Null)
			}
		}
	}
}

// codesOf scores n vectors that vector draws from the values of two factors.
func codesOf(t *testing.T, n int, vector func(a, b float64, g *rand.Rand) []float64) map[string]measure.Score {
	t.Helper()
	g := rand.New(rand.NewPCG(5, 9))
	settings := codesDefaults()
	table := &codeTable{settings: &settings, factors: []codeFactor{{name: "a", categorical: true}, {name: "b"}}, shuffle: g.Perm(n)}
	for range n {
		a, b := float64(g.IntN(2)), g.Float64()
		table.vectors = append(table.vectors, vector(a, b, g))
		table.factors[0].add(a)
		table.factors[1].add(b)
	}
	scores, err := table.scores(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]measure.Score{}
	for _, s := range scores {
		out[s.Statistic] = s
	}
	return out
}

// TestCodesKnow checks vectors with a component for each factor, the same rotated by 45 degrees,
// and noise, whose scores are those of chance.
func TestCodesKnow(t *testing.T) {
	t.Parallel()
	const n = 400
	apart := codesOf(t, n, func(a, b float64, g *rand.Rand) []float64 {
		return []float64{a + 0.01*g.NormFloat64(), b + 0.01*g.NormFloat64()}
	})
	mixed := codesOf(t, n, func(a, b float64, g *rand.Rand) []float64 {
		u, v := (a-0.5)*2, (b-0.5)*math.Sqrt(12)
		return []float64{u + v + 0.01*g.NormFloat64(), u - v + 0.01*g.NormFloat64()}
	})
	noise := codesOf(t, n, func(_, _ float64, g *rand.Rand) []float64 { return []float64{g.NormFloat64(), g.NormFloat64()} })
	for _, name := range codeStatistics {
		if name == "dci-error" {
			if apart[name].Value > 0.2 || mixed[name].Value > 0.2 || noise[name].Value < 0.9 {
				t.Errorf("%s is %v, %v and %v, want low, low and about 1", name, apart[name].Value, mixed[name].Value, noise[name].Value)
			}
			continue
		}
		if v := apart[name]; v.Value < 0.55 || v.Null > 0.5 && !strings.HasPrefix(name, "dci") && !strings.HasPrefix(name, "info") {
			t.Errorf("%s of a component for each factor is %v with null %v", name, v.Value, v.Null)
		}
		if v := mixed[name].Value; name == "infoe" && v < 0.8 || name != "infoe" && v > 0.45 {
			t.Errorf("%s of mixed components is %v", name, v)
		}
	}
	for _, name := range []string{"mig", "sap", "infoe"} {
		if v := noise[name]; math.Abs(v.Value-v.Null) > 0.1 || v.Value > 0.15 {
			t.Errorf("%s of noise is %v with null %v", name, v.Value, v.Null)
		}
	}
}

// TestLiDARGolden compares with numpy, see testdata/codes.py.
func TestLiDARGolden(t *testing.T) {
	t.Parallel()
	for i, c := range readCodesGolden(t).LiDAR {
		s, err := lidarOf(t.Context(), c.Samples, c.Versions, 1e-4)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(s.Value-c.Value) > 1e-6*c.Value || !(s.Low < s.Value && s.Value < s.High) {
			t.Errorf("case %d: %.9f in [%v, %v], want %.9f", i, s.Value, s.Low, s.High, c.Value)
		}
	}
}

// TestLiDARCountsWhatIsKept draws versions that differ in all but two directions: the samples are
// told apart in two, though the vectors vary in twelve.
func TestLiDARCountsWhatIsKept(t *testing.T) {
	t.Parallel()
	const n, q, d = 200, 8, 12
	g := rand.New(rand.NewPCG(2, 7))
	var samples [][]float32
	for range n {
		row := make([]float32, q*d)
		a, b := float32(10*g.NormFloat64()), float32(10*g.NormFloat64())
		for k := range row {
			switch k % d {
			case 0:
				row[k] = a + float32(0.1*g.NormFloat64())
			case 1:
				row[k] = b + float32(0.1*g.NormFloat64())
			default:
				row[k] = float32(g.NormFloat64())
			}
		}
		samples = append(samples, row)
	}
	s, err := lidarOf(t.Context(), samples, q, 1e-4)
	if err != nil || math.Abs(s.Value-2) > 0.1 {
		t.Errorf("lidar is %v, %v; want about 2", s.Value, err)
	}
	same := [][]float32{{1, 2, 1, 2}, {1, 2, 1, 2}, {1, 2, 1, 2}, {1, 2, 1, 2}}
	if s, err := lidarOf(t.Context(), same, 2, 1e-4); err != nil || s.Value != 1 {
		t.Errorf("lidar of equal vectors is %v, %v; want 1", s.Value, err)
	}
}

// TestCodesSettings checks settings out of range.
func TestCodesSettings(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*CodesSettings){
		func(s *CodesSettings) { s.Bins = 1 }, func(s *CodesSettings) { s.Neighbours = 0 }, func(s *CodesSettings) { s.Lasso = 0 },
		func(s *CodesSettings) { s.Train = 1 }, func(s *CodesSettings) { s.Factors = []string{"a", "a"} },
	} {
		s := codesDefaults()
		change(&s)
		if _, err := Codes(s); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	for _, s := range []LiDARSettings{{Views: 1, Delta: 1}, {Views: 3}} {
		if _, err := LiDAR(s); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	if !slices.Equal(codeStatistics, func() (out []string) {
		for _, d := range CodesDescriptor().Statistics {
			out = append(out, d.Name)
		}
		return out
	}()) {
		t.Error("the descriptor has other statistics")
	}
}
