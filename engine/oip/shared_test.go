//go:build linux

package oip

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// A sharer is a server of the model y = 2 x, of n x 3, with the system shared-memory extension. It
// also has the mean of the values as a vector, keeps y, and computes the reduction |kept - y|^2.
type sharer struct {
	t testing.TB

	mutex   sync.Mutex
	regions map[string][]byte
	kept    map[string][]float32
	most    int // samples of a request
	refuse  int // samples of a request above which the answer is an error; 0: none
}

func (s *sharer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var body struct {
		Key      string
		ByteSize int `json:"byte_size"`
		wireRequest
	}
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			s.t.Error(err)
		}
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	last := parts[len(parts)-1]
	switch {
	case r.URL.Path == "/v2":
		fmt.Fprint(w, `{"extensions": ["system_shared_memory"]}`)
	case r.URL.Path == "/v2/models/double":
		fmt.Fprint(w, `{"name": "double", "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}],
			"outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 3]}], "parameters": {"pools": true, "keeps": true}}`)
	case last == "register":
		f, err := os.OpenFile(filepath.Join("/dev/shm", body.Key), os.O_RDWR, 0)
		if err != nil {
			s.t.Error(err)
			return
		}
		defer f.Close()
		memory, err := syscall.Mmap(int(f.Fd()), 0, body.ByteSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		if err != nil {
			s.t.Error(err)
		}
		s.regions[parts[3]] = memory
	case last == "unregister" && parts[1] == "systemsharedmemory":
		_ = syscall.Munmap(s.regions[parts[3]])
		delete(s.regions, parts[3])
	case last == "unregister":
		delete(s.kept, parts[4])
	case last == "infer":
		s.infer(w, &body.wireRequest)
	default:
		http.NotFound(w, r)
	}
}

func (s *sharer) memory(t wireTensor) []float32 {
	p := t.Parameters
	memory := s.regions[p["shared_memory_region"].(string)][int(p["shared_memory_offset"].(float64)):][:int(p["shared_memory_byte_size"].(float64))]
	return floats(memory)
}

func (s *sharer) infer(w http.ResponseWriter, r *wireRequest) {
	x := s.memory(r.Inputs[0])
	n := r.Inputs[0].Shape[0]
	s.most = max(s.most, n)
	if s.refuse > 0 && n > s.refuse {
		http.Error(w, `{"error": "too large"}`, http.StatusBadRequest)
		return
	}
	var outputs []map[string]any
	for _, o := range r.Outputs {
		if id, ok := o.Parameters["keep"].(string); ok {
			s.kept[id] = nil
			for _, v := range x {
				s.kept[id] = append(s.kept[id], 2*v)
			}
			continue
		}
		y, width := s.memory(o), 1
		switch reduction, _ := o.Parameters["reduction"].(map[string]any); {
		case reduction != nil:
			partners := s.memory(r.Inputs[1]) // bytes of int32
			if len(partners) != n {
				s.t.Errorf("%d partners of %d samples", len(partners), n)
			}
			for i := range y {
				y[i] = 0
				for j := range 3 {
					d := s.kept[reduction["clean"].(string)][3*i+j] - 2*x[3*i+j]
					y[i] += d * d
				}
			}
		case o.Parameters["pool"] != nil:
			for i := range y {
				y[i] = 2 * (x[3*i] + x[3*i+1] + x[3*i+2]) / 3
			}
		default:
			width = 3
			for i, v := range x {
				y[i] = 2 * v
			}
		}
		outputs = append(outputs, map[string]any{"name": o.Name, "datatype": "FP32", "shape": []int{n, width}})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"outputs": outputs})
}

func openSharer(t *testing.T) (*sharer, *Network) {
	t.Helper()
	s := &sharer{t: t, regions: map[string][]byte{}, kept: map[string][]float32{}}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	n, err := Open(t.Context(), h.URL+"/v2/models/double", Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, n
}

// TestAllocate checks that outputs in memory of Allocate are written there, also in parts of a
// batch, and others are copied; and that nothing stays registered.
func TestAllocate(t *testing.T) {
	t.Parallel()
	server, n := openSharer(t)
	layer := tensor.Layer{Name: "y", Shape: []int{3}, Axes: "NT"}
	request := engine.Request{Outputs: []engine.Output{
		{Name: "y", Shape: []int{3}},
		{Name: "y", Shape: []int{1}, Pool: &engine.Pool{Kind: string(pooling.Mean), Axes: pooling.Mean.Axes(layer)}},
	}}
	session, err := n.Open(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	const samples = 8
	memory := session.(engine.Allocator).Allocate(3*samples + 16)
	if memory == nil {
		t.Skip("there is no shared memory")
	}
	for _, refuse := range []int{0, 3} {
		server.refuse = refuse
		x, y, mean := engine.NewArray(engine.Float, samples, 3), &engine.Array{Shape: []int{samples, 3}, Data: memory[16:]}, engine.NewArray(engine.Float, samples, 1)
		clear(memory)
		for i := range x.Data.([]float32) {
			x.Data.([]float32)[i] = float32(i)
		}
		if err := session.Run(t.Context(), engine.Batch{Inputs: []*engine.Array{x}, Outputs: []*engine.Array{y, mean}}); err != nil {
			t.Fatal(err)
		}
		for i, v := range memory {
			if want := float32(max(0, 2*(i-16))); v != want {
				t.Errorf("at most %d samples: value %d is %v, want %v", refuse, i, v, want)
			}
		}
		for i, v := range mean.Tensor().Data {
			if want := float32(2 * (3*i + 1)); v != want {
				t.Errorf("mean %d is %v, want %v", i, v, want)
			}
		}
	}
	if err := session.Close(); err != nil || len(server.regions) != 0 {
		t.Errorf("%d regions are left: %v", len(server.regions), err)
	}
}

// TestReductions runs clean samples, which the server keeps, and transformed ones.
func TestReductions(t *testing.T) {
	t.Parallel()
	server, n := openSharer(t)
	layer := tensor.Layer{Name: "y", Shape: []int{3}, Axes: "NC"}
	clean, err := n.Open(t.Context(), engine.Request{Outputs: []engine.Output{{Name: "y", Shape: []int{3}, Keep: true}}})
	if err != nil {
		t.Fatal(err)
	}
	moved, err := n.Open(t.Context(), engine.Request{Reductions: []engine.Reduction{{Layer: layer, Values: &measure.Reduction{Sums: []measure.Sum{{Of: measure.OfDifference}}, Width: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := moved.Inputs(), []string{"x", engine.CleanInput("y"), engine.PartnersInput}; !slices.Equal(got, want) {
		t.Errorf("inputs %q, want %q", got, want)
	}
	x, kept := engine.NewArray(engine.Float, 2, 3), &engine.Array{Shape: []int{2, 3}}
	if err := clean.Bind(kept); err != nil {
		t.Fatal(err)
	}
	if err := clean.Run(t.Context(), engine.Batch{Inputs: []*engine.Array{x}, Outputs: []*engine.Array{kept}}); err != nil {
		t.Fatal(err)
	}
	copy(x.Data.([]float32), []float32{1, 1, 1, 0, 2, 0})
	partners, sums := engine.NewArray(engine.Int32, 2), engine.NewArray(engine.Float, 2, 1)
	batch := engine.Batch{Inputs: []*engine.Array{x, kept, partners}, Outputs: []*engine.Array{sums}}
	if err := moved.Run(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if got := sums.Tensor().Data; !slices.Equal(got, []float32{12, 16}) {
		t.Errorf("sums %v, want 12 and 16", got)
	}
	server.refuse = 1
	if err := moved.Run(t.Context(), batch); err == nil || !strings.Contains(err.Error(), "too large") || server.most != 2 {
		t.Errorf("%v, want the refusal of a batch that is not divided", err)
	}
	if err := kept.Close(); err != nil || len(server.kept) != 0 {
		t.Errorf("%d arrays are kept: %v", len(server.kept), err)
	}
}
