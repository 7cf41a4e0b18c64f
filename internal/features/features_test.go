package features

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A reader reads samples of src and counts them. A position is an index into src. The samples at
// the positions in bad are left out, as samples that cannot be read are.
type reader struct {
	src  dataset.Source
	bad  []int
	read int
	mu   sync.Mutex
}

func (r *reader) Read(ctx context.Context, positions []int, f dataset.Frame) ([]dataset.Sample, error) {
	var out []dataset.Sample
	for _, p := range positions {
		r.mu.Lock()
		r.read++
		r.mu.Unlock()
		if slices.Contains(r.bad, p) {
			continue
		}
		s, err := r.src.At(ctx, p, f)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// request returns a request for several layers of a small model (those of the operators Conv and
// Relu, and the output) on n synthetic images, and the reader of the images. It asks for the mean
// of each channel over the image. Data identifies the images by a hash.
func request(t testing.TB, n int) (Request, *reader) {
	t.Helper()
	path := testmodel.Write(t, t.TempDir(), "m", testmodel.Options{})
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"op:Conv", "op:Relu", "output"}})
	if err != nil {
		t.Fatal(err)
	}
	src, err := dataset.OpenShapes(dataset.ShapesOptions{N: n, Size: 16})
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{src: src}
	return Request{Model: m, Layers: m.Layers(), Pool: pooling.Mean, Data: src.Fingerprint(), N: n, Read: r.Read, Memory: 1 << 20}, r
}

// store returns an empty store: a folder of files with the layers' activations on all samples.
func store(t testing.TB) *Store {
	return &Store{Dir: filepath.Join(t.TempDir(), "store")}
}

// mustLayers returns the tables of a request, one for each layer with one vector (row) per sample.
// The store computes those that it lacks. They are closed when the test ends.
func mustLayers(t *testing.T, s *Store, r Request) []*Table {
	t.Helper()
	tables, err := s.Layers(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, table := range tables {
			table.Close()
		}
	})
	return tables
}

// same fails the test unless two tables have the same positions and rows.
func same(t *testing.T, a, b *Table) {
	t.Helper()
	if a.Dim != b.Dim || !slices.Equal(a.Positions, b.Positions) {
		t.Fatalf("tables of %d x %d and %d x %d, want the same positions and sizes", a.Len(), a.Dim, b.Len(), b.Dim)
	}
	x, y := make([]float32, a.Dim), make([]float32, b.Dim)
	for i := range a.Len() {
		if err := errors.Join(a.Row(x, i), b.Row(y, i)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(x, y) {
			t.Fatalf("row %d is %v in one table and %v in the other, want the same", i, x, y)
		}
	}
}

// The store holds the pooled activations of the model, which are computed once.
func TestExtractedOnce(t *testing.T) {
	t.Parallel()
	r, reader := request(t, 70) // more than one read (64 samples) and several batches (32)
	s := store(t)
	tables := mustLayers(t, s, r)
	if reader.read != 70 {
		t.Fatalf("%d samples were read, want 70", reader.read)
	}
	session, err := r.Model.NewSession(r.Layers, false)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	buf, err := session.NewBuffers(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 33, 69} {
		sample, _ := reader.src.At(t.Context(), i, r.Model.Frame())
		if err := session.Run(t.Context(), []tensor.Tensor{sample.Input}, buf); err != nil {
			t.Fatal(err)
		}
		for k, table := range tables {
			z := buf.Layer(k).Data
			per := len(z) / table.Dim // channels first: a channel's elements lie together
			row := make([]float32, table.Dim)
			if err := table.Row(row, i); err != nil {
				t.Fatal(err)
			}
			for c, got := range row {
				var sum float64
				for _, v := range z[c*per : (c+1)*per] {
					sum += float64(v)
				}
				if want := sum / float64(per); math.Abs(want-float64(got)) > 1e-5*(1+math.Abs(want)) {
					t.Errorf("layer %s, sample %d, channel %d: %v, want %v", r.Layers[k].Name, i, c, got, want)
				}
			}
		}
	}
	reader.read = 0
	again := r
	again.Memory = 0 // rows stay on disk
	for k, table := range mustLayers(t, s, again) {
		same(t, tables[k], table)
	}
	found, err := s.Samples(t.Context(), r)
	if err != nil || reader.read != 0 {
		t.Fatalf("%d samples were read again, error %v; want none", reader.read, err)
	}
	want, _ := reader.src.At(t.Context(), 5, r.Model.Frame())
	if found.Len() != 70 || found.Label[5] != want.Label || found.Factors["hue"][5] != want.Factors["hue"] {
		t.Errorf("%d samples, sample 5 with label %d and hue %v; want 70, %d and %v", found.Len(), found.Label[5], found.Factors["hue"][5], want.Label, want.Factors["hue"])
	}
	for name, change := range map[string]func(*Request){
		"data":    func(r *Request) { r.Data = "others" },
		"model":   func(r *Request) { r.Identity = "another" },
		"pooling": func(r *Request) { r.Pool = pooling.Max },
		"engine":  func(r *Request) { r.Engine = "cuda" },
		// A view identifies the transformation of the samples.
		"view": func(r *Request) {
			r.View, r.Transform = "grey", func(dataset.Sample) transform.Op { return transform.Grayscale{} }
		},
	} {
		other := r
		change(&other)
		reader.read = 0
		if mustLayers(t, s, other); reader.read != 70 {
			t.Errorf("another %s: %d samples were read, want 70", name, reader.read)
		}
	}
}

func TestUnreadableAndSelectedSamples(t *testing.T) {
	t.Parallel()
	r, reader := request(t, 200)
	reader.bad = []int{3, 150}
	s := store(t)
	part := r
	part.Positions = []int{1, 3, 7, 199} // request these samples only
	table := mustLayers(t, s, part)[0]
	if !slices.Equal(table.Positions, []int{1, 7, 199}) {
		t.Fatalf("positions %v of the table, want [1 7 199]", table.Positions)
	}
	whole := mustLayers(t, s, r)[0]
	if whole.Len() != 198 || slices.Contains(whole.Positions, 150) {
		t.Fatalf("the table of all samples has %d rows, want 198 without position 150", whole.Len())
	}
	reader.read = 0
	if again := mustLayers(t, s, part)[0]; again.Len() != 198 || reader.read != 0 {
		t.Errorf("with all samples in the store, a request for four gets %d rows and reads %d samples, want 198 and 0", again.Len(), reader.read)
	}
}

// A table whose file was cut short, or in which one bit was changed, is computed again.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	r, reader := request(t, 20)
	r.Layers = r.Layers[:1]
	s := store(t)
	want := mustLayers(t, s, r)[0]
	// The key, here of the table of all positions (nil), gives the name of the file.
	key, err := r.key(r.Layers[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(s.path(key))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		damaged := slices.Clone(whole)
		if i%2 == 0 {
			damaged = damaged[:rng.IntN(len(damaged))]
		} else {
			damaged[rng.IntN(len(damaged))] ^= 1 << rng.IntN(8)
		}
		if err := os.WriteFile(s.path(key), damaged, 0o666); err != nil {
			t.Fatal(err)
		}
		reader.read = 0
		same(t, want, mustLayers(t, s, r)[0])
		if reader.read != 20 {
			t.Fatalf("damage %d: %d samples were read, want all 20", i, reader.read)
		}
	}
}

// Concurrent extractions give the same tables. A stopped extraction leaves no complete file.
func TestConcurrentAndStoppedExtraction(t *testing.T) {
	t.Parallel()
	r, _ := request(t, 100)
	s := store(t)
	stopped, cancel := context.WithCancel(t.Context())
	interrupted := r
	interrupted.Progress = func(int64) { cancel() }
	if _, err := s.Layers(stopped, interrupted); !errors.Is(err, context.Canceled) {
		t.Fatalf("a stopped extraction returns the error %v, want context.Canceled", err)
	}
	if files, _ := filepath.Glob(filepath.Join(s.Dir, "*", "*")); len(files) > 0 {
		t.Fatalf("a stopped extraction leaves %v", files)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			tables, err := s.Layers(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			for _, table := range tables {
				if table.Len() != 100 {
					t.Errorf("a table has %d rows, want 100", table.Len())
				}
				table.Close()
			}
		})
	}
	wg.Wait()
	want := mustLayers(t, store(t), r)
	for k, table := range mustLayers(t, s, r) {
		same(t, want[k], table)
	}
}

// The environment sets the folder and the size of the default store. The size is 0 if the variable
// is not set, which stands for 20 GB; in the table below, -1 stands for an error.
func TestDefaultStore(t *testing.T) {
	t.Setenv("NOETHER_CACHE", "cache")
	for text, want := range map[string]int64{"": 0, "5000": 5000, "20_000": 20_000, "20GB": -1, "1e9": -1, "0": -1, "-3": -1} {
		t.Setenv("NOETHER_REPRESENTATIONS_SIZE", text)
		s, err := Default()
		if want < 0 {
			if err == nil || !strings.Contains(err.Error(), "must be a positive number of bytes") {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if err != nil || s.Size != want || s.Dir != filepath.Join("cache", "representations") {
			t.Errorf("%q: %+v, %v; want %d bytes", text, s, err, want)
		}
	}
}

// A store of 3000 bytes holds three of four files of 1000 bytes. It evicts b, the least recently
// used: a is older, but was loaded since. It also removes temporary files that are a day old. A
// file that exceeds the size alone is stored nevertheless.
func TestEviction(t *testing.T) {
	t.Parallel()
	s := store(t)
	s.Size = 3000
	old := filepath.Join(s.Dir, "ab", ".left.tmp")
	for i, name := range []string{"a", "b", "c"} {
		if err := s.Save(name, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		key, _ := keyOf(name) // a hash, the name of the file
		then := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(s.path(key), then, then); err != nil {
			t.Fatal(err)
		}
	}
	os.MkdirAll(filepath.Dir(old), 0o777)
	os.WriteFile(old, make([]byte, 500), 0o666)
	aDayAgo := time.Now().Add(-25 * time.Hour)
	os.Chtimes(old, aDayAgo, aDayAgo)
	if got, err := s.Load("a"); err != nil || len(got) != 1000 { // and so it was used just now
		t.Fatalf("loading a: %d bytes, error %v; want 1000 bytes", len(got), err)
	}
	if err := s.Save("d", make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, name := range []string{"a", "b", "c", "d"} {
		if got, _ := s.Load(name); got != nil {
			kept = append(kept, name)
		}
	}
	if strings.Join(kept, "") != "acd" {
		t.Errorf("stored representations = %v, want a, c and d", kept)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("the temporary file of a killed process was not removed")
	}
	if err := s.Save("large", make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Load("large"); len(got) != 5000 {
		t.Error("the newest file was removed")
	}
}

// One weight of the convolution is NaN, and so are activations of the layer conv.
func TestNonFiniteActivations(t *testing.T) {
	t.Parallel()
	r, _ := request(t, 10)
	path := testmodel.Write(t, t.TempDir(), "m", testmodel.Options{Poison: float32(math.NaN())})
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"op:Conv"}})
	if err != nil {
		t.Fatal(err)
	}
	r.Model, r.Layers = m, m.Layers()
	_, err = store(t).Layers(t.Context(), r)
	if err == nil || !strings.Contains(err.Error(), "layer conv: NaN or infinity") || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "writing") {
		t.Errorf("the error is %v, want one line that names the layer conv and not the file", err)
	}
}
