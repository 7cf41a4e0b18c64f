package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/similarity"
)

// npy returns an array of float32 in NumPy's format.
func npy(values []float32, shape ...int) []byte {
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]")
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }\n", text)
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	out = append(out, header...)
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// normals returns n draws from a standard normal distribution.
func normals(seed uint64, n int) []float32 {
	g := rand.New(rand.NewPCG(seed, 3))
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(g.NormFloat64())
	}
	return out
}

// TestCompareArrays compares an array with a permutation of it, and with itself.
func TestCompareArrays(t *testing.T) {
	dir := t.TempDir()
	x := normals(1, 120*6)              // 120 samples of 6 variables
	permuted := make([]float32, len(x)) // the columns permuted and doubled
	for i, v := range x {
		permuted[i/6*6+(i+2)%6] = 2 * v
	}
	a, b := write(t, dir, "a.npy", npy(x, 120, 6)), write(t, dir, "b.npy", npy(permuted, 120, 2, 3))
	text, err := output(t, "compare", a, b, a, a, "--measure", "all", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Statistic, Layer string
		Model            string
		OtherModel       string `json:"other_model"`
		Value, Null      *float64
		Low, High        *float64
		N                int
	}
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if len(rows) != 2*len(similarity.Names()) {
		t.Fatalf("%d rows of 2 x %d statistics", len(rows), len(similarity.Names()))
	}
	for _, r := range rows {
		// d says, among other things, whether lower values mean more similar, and how the null (the
		// value that chance alone gives) is computed; "": there is none.
		d, _ := similarity.Descriptor().Statistic(r.Statistic)
		if r.Model != a || r.Value == nil || r.N != 120 || (r.Null == nil) != (d.Null == "") || r.Low == nil || r.High == nil {
			t.Errorf("%s has the score %+v, want one of %s over 120 samples with a value, an interval, and the null that its description states", r.Statistic, r, a)
			continue
		}
		want, exact := 1., true // exact: the value must be want
		switch {
		case d.Direction == measure.Lower:
			// Other distances between x and 2 x are not 0.
			want, exact = 0, r.OtherModel == a || r.Statistic == similarity.ShapeMetric || r.Statistic == similarity.GULP
		case r.Statistic == similarity.RidgePredictivity, r.Statistic == similarity.PLSPredictivity:
			exact = false // how well one predicts samples of the other
		}
		if exact && math.Abs(*r.Value-want) > 1e-6 {
			t.Errorf("%s of equal representations is %+v, want the value %g", r.Statistic, r, want)
		}
	}
}

// An .npz archive holds several .npy arrays by key. PATH:KEY selects one.
func TestCompareAnArchive(t *testing.T) {
	dir := t.TempDir()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for i, key := range []string{"one", "two", "three"} {
		w, err := z.Create(key + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(npy(normals(uint64(i), 40*3*4), 40, 3, 2, 2)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := write(t, dir, "a.npz", buf.Bytes())
	text, err := output(t, "compare", path, "--measure", "linear-cka", "--pool", "mean")
	if err != nil || strings.Count(text, "linear-cka") != 3 || !strings.Contains(text, path+":one and "+path+":three") {
		t.Errorf("all pairs of three arrays give\n%s\nerror %v, want three rows of linear-cka", text, err)
	}
	if text, err = output(t, "compare", path+":one", path+":two"); err != nil || !strings.Contains(text, "debiased-cka") {
		t.Errorf("two arrays by their keys give\n%s\nerror %v, want debiased-cka", text, err)
	}
}

func TestCompareErrors(t *testing.T) {
	dir := t.TempDir()
	good := write(t, dir, "good.npy", npy(normals(1, 60), 20, 3))
	short := write(t, dir, "short.npy", npy(normals(1, 30), 10, 3))
	bad := normals(1, 60)
	bad[31] = float32(math.NaN()) // row 10, column 1 of 20 x 3
	nan := write(t, dir, "nan.npy", npy(bad, 20, 3))
	cut := write(t, dir, "cut.npy", npy(normals(1, 60), 20, 3)[:200]) // ends among the values
	// The type is that of text of one character.
	text := write(t, dir, "text.npy", bytes.Replace(npy(normals(1, 60), 20, 3), []byte("<f4"), []byte("<U1"), 1))
	hdf5 := write(t, dir, "arrays.h5", []byte("\x89HDF\r\n\x1a\n"))
	for _, c := range []struct {
		want string // texts separated by |, one of which the error has
		args []string
	}{
		{good + " has 20 rows and " + short + " 10", []string{good, short}},
		{nan + ": NaN or infinity in row 10, column 1", []string{good, nan}},
		{"too few for shape [20 3]", []string{good, cut}},
		{"plain numbers|type U1", []string{text, good}},
		{"arrays.h5: an HDF5 file, which is not read: save its arrays by numpy.save", []string{hdf5, good}},
		{"no such file", []string{good, filepath.Join(dir, "none.npy")}},
		{"takes pairs", []string{good}},
		{"takes pairs", []string{good, good, good}},
		{"--measure: the statistic rtd is not computed: the representation topology divergence", []string{good, good, "--measure", "rtd"}},
		{"the statistic Geometry_Score is not computed", []string{good, good, "--measure", "linear-cka,Geometry_Score"}},
		{`unknown statistic "cka"`, []string{good, good, "--measure", "cka"}},
		{"cannot be combined", []string{good, good, "--measure", "seis,rsa"}},
		{"it must be none or mean", []string{good, good, "--pool", "max"}},
		{"--memory", []string{good, good, "--memory", "much"}},
		{"neighbours is 0", []string{good, good, "--neighbours", "0"}},
	} {
		_, err := output(t, append([]string{"compare"}, c.args...)...)
		found := false
		for _, want := range strings.Split(c.want, "|") {
			found = found || err != nil && strings.Contains(err.Error(), want)
		}
		if !found || strings.Contains(err.Error(), "\n") {
			t.Errorf("compare %q: error %q, want one that says %q", c.args, fmt.Sprint(err), c.want)
		}
	}
}
