// Package recorded is an engine that computes nothing: it looks up activations that any framework
// has stored.
//
// A folder has the activations of a model on the samples of one data set: arrays whose row i
// belongs to sample i. Those for the clean samples are in "clean", those for transformed ones in
// NAME or NAME/VALUE: the name of the transformation and, if it has a list, the value. Later trials
// are in a folder below, such as NAME/VALUE/trial-1 (trials count from 0). Each is a folder with a
// file for each layer, or one file with an array for each layer:
//
//	resnet20/clean/layer1.npy          resnet20/clean.safetensors
//	resnet20/clean/layer2.npy    or    resnet20/rotate/90.safetensors
//	resnet20/rotate/90/layer1.npy
//	resnet20/rotate/90/layer2.npy
//
// If the folder has a file samples.csv, as noether extract writes it, row i belongs to the sample
// of the data whose number is in the column "index" of its i-th line.
//
// Files are .npy, .npz, .safetensors or .parquet. In place of a file there may be a folder of Zarr: an
// array, or for a view a group whose name ends in .zarr. See dataset.OpenArrayFile.
//
//	net, err := recorded.Open(ctx, "resnet20")
//	m, err := model.Open(ctx, net, model.Options{Layers: []string{"layer*"}})
package recorded

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/filestate"
	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/tensor"
)

// Clean is the name of the folder or file with the activations on clean samples.
const Clean = "clean"

var extensions = []string{".npy", ".npz", ".safetensors", ".parquet"}

// zarr is the end of the name of a folder of Zarr. In a view, an array may be without.
const zarr = ".zarr"

// A Network is a folder of recorded activations. It implements engine.Network; it has no inputs.
type Network struct {
	dir    string
	n      int // samples
	layers []tensor.Layer
	rows   map[int]int // row of each sample, by its index in the data; nil: these are equal

	states map[string]filestate.State // of all files, by path, when the folder was opened

	mutex sync.Mutex
	views map[string]map[string]array // by view and layer
}

// An array is an open file, or an array of one.
type array struct {
	*dataset.ArrayFile
	files []string // that must not change
}

// Open reads the shapes of the clean activations. It is an error if layers have different numbers
// of samples.
func Open(ctx context.Context, dir string) (*Network, error) {
	n := &Network{dir: dir, views: map[string]map[string]array{}, states: map[string]filestate.State{}}
	if err := n.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("activations %s: %w", dir, err), n.Close())
	}
	return n, nil
}

func (n *Network) open(ctx context.Context) error {
	err := n.eachFile(func(path string) (err error) {
		n.states[path], err = filestate.Of(path)
		return err
	})
	if err != nil {
		return err
	}
	arrays, err := n.view(ctx, "")
	if err != nil {
		return err
	}
	names, err := listArrays(ctx, filepath.Join(n.dir, Clean))
	if err != nil {
		return err
	}
	for i, a := range names {
		shape := arrays[a.layer].Shape()
		if len(shape) < 2 {
			return fmt.Errorf("layer %s has the shape %v: it must have a row for each sample, of at least one value", a.layer, shape)
		}
		if i == 0 {
			n.n = shape[0]
		}
		if shape[0] != n.n {
			return fmt.Errorf("layer %s has %d samples, and layer %s has %d", a.layer, shape[0], names[0].layer, n.n)
		}
		axes := map[int]tensor.Axes{1: "NC", 2: "NCT", 3: "NCHW"}[len(shape)-1]
		n.layers = append(n.layers, tensor.Layer{Name: a.layer, Depth: i + 1, Shape: slices.Clone(shape[1:]), Axes: axes})
	}
	return n.readSamples()
}

// SamplesFile is the name of the file that lists the samples of the rows.
const SamplesFile = "samples.csv"

// readSamples reads the samples of the rows, if the folder lists them.
func (n *Network) readSamples() error {
	path := filepath.Join(n.dir, SamplesFile)
	f, err := filesys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(lines) == 0 || slices.Index(lines[0], "index") < 0 {
		return fmt.Errorf("%s has no column index, the number of each row's sample in the data", path)
	}
	if len(lines)-1 != n.n {
		return fmt.Errorf("%s lists %d samples, and the arrays have %d rows", path, len(lines)-1, n.n)
	}
	column := slices.Index(lines[0], "index")
	n.rows = map[int]int{}
	for row, line := range lines[1:] {
		index, err := strconv.Atoi(line[column])
		if _, double := n.rows[index]; err != nil || index < 0 || double {
			return fmt.Errorf("%s, line %d: the index is %q: it must be the number of a sample, each once", path, row+2, line[column])
		}
		n.rows[index] = row
	}
	return nil
}

// eachFile calls f for the list of samples and the files of arrays in the folder, in the order of
// their paths. All files of an array of Zarr belong to it.
func (n *Network) eachFile(f func(path string) error) error {
	return filepath.WalkDir(n.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && dataset.IsZarrArray(path):
			files, err := filesBelow(path)
			for _, file := range files {
				err = errors.Join(err, f(file))
			}
			return cmp.Or(err, fs.SkipDir)
		case d.IsDir() || !slices.Contains(extensions, filepath.Ext(path)) && path != filepath.Join(n.dir, SamplesFile):
			return nil
		}
		return f(path)
	})
}

func filesBelow(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// An arrayName is a layer, and where its array is.
type arrayName struct{ layer, path, key string }

// listArrays lists the arrays of a view, given its path without an extension: those of a file in
// the order of the file, those of a folder by name, in which digits count as numbers.
func listArrays(ctx context.Context, base string) ([]arrayName, error) {
	var list []arrayName
	byName := func(a, b arrayName) int { return strings.Compare(natural(a.layer), natural(b.layer)) }
	for _, ext := range append(extensions[1:len(extensions):len(extensions)], zarr) {
		if _, err := os.Stat(base + ext); err != nil {
			continue
		}
		keys, err := dataset.ArrayKeys(ctx, base+ext)
		for _, key := range keys {
			list = append(list, arrayName{strings.TrimSuffix(key, zarr), base + ext, key})
		}
		if ext == zarr {
			slices.SortFunc(list, byName)
		}
		return list, err
	}
	err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		ext := filepath.Ext(path)
		folder := err == nil && d.IsDir() && dataset.IsZarrArray(path)
		if folder && ext != zarr {
			ext = ""
		}
		if folder || err == nil && !d.IsDir() && slices.Contains(extensions, ext) {
			layer, _ := filepath.Rel(base, strings.TrimSuffix(path, ext))
			list = append(list, arrayName{filepath.ToSlash(layer), path, ""})
		}
		if folder {
			return fs.SkipDir
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no folder %s, and no file %s%s, %s: record the activations there", base, base, strings.Join(extensions[1:], ", "), zarr)
	}
	slices.SortFunc(list, byName)
	return list, err
}

var digits = regexp.MustCompile(`\d+`)

// natural returns a text whose order is that of names in which digits count as numbers.
func natural(name string) string {
	return digits.ReplaceAllStringFunc(name, func(d string) string { return strings.Repeat("0", max(0, 20-len(d))) + d })
}

func (n *Network) view(ctx context.Context, view string) (map[string]array, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if arrays := n.views[view]; arrays != nil {
		return arrays, nil
	}
	folder := Clean
	if view != "" {
		folder = filepath.FromSlash(view)
	}
	if !filepath.IsLocal(folder) {
		return nil, fmt.Errorf("%q names no folder of recorded activations", view)
	}
	base := filepath.Join(n.dir, folder)
	list, err := listArrays(ctx, base)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s has no arrays (%s, %s)", base, strings.Join(extensions, ", "), zarr)
	}
	arrays := map[string]array{}
	n.views[view] = arrays // Close closes what has been opened
	if err == nil {
		err = openAll(ctx, base, list, arrays)
	}
	if err == nil && view != "" {
		err = n.checkView(arrays, view)
	}
	if err != nil {
		closeArrays(arrays)
		delete(n.views, view)
		return nil, err
	}
	return arrays, nil
}

// openAll opens the arrays of a list, those of a file together, and puts them into arrays by layer.
// Those that were opened before an error are there too.
func openAll(ctx context.Context, base string, list []arrayName, arrays map[string]array) error {
	var paths []string
	inFile := map[string][]arrayName{}
	for _, a := range list {
		if inFile[a.path] == nil {
			paths = append(paths, a.path)
		}
		inFile[a.path] = append(inFile[a.path], a)
	}
	for _, path := range paths {
		var keys []string
		for _, a := range inFile[path] {
			keys = append(keys, a.key)
		}
		files, err := dataset.OpenArrayFiles(ctx, path, keys)
		if err != nil {
			return err
		}
		info, failed := os.Stat(path)
		for i, a := range inFile[path] {
			if _, twice := arrays[a.layer]; twice {
				err = errors.Join(err, fmt.Errorf("%s has two arrays of layer %s", base, a.layer), files[i].Close())
				continue
			}
			read := []string{path}
			if failed == nil && info.IsDir() {
				var listing error
				read, listing = filesBelow(filepath.Join(path, filepath.FromSlash(a.key)))
				err = errors.Join(err, listing)
			}
			arrays[a.layer] = array{files[i], read}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkView returns an error if the layers of a view differ in shape from the clean ones.
func (n *Network) checkView(arrays map[string]array, view string) error {
	for _, l := range n.layers {
		a, ok := arrays[l.Name]
		if want := append([]int{n.n}, l.Shape...); ok && !slices.Equal(a.Shape(), want) {
			return fmt.Errorf("layer %s has the shape %v in %s, and %v in %s", l.Name, a.Shape(), view, want, Clean)
		}
	}
	return nil
}

// Samples returns the number of samples, and whether samples.csv lists which these are.
func (n *Network) Samples() (count int, listed bool) { return n.n, n.rows != nil }

// Metadata implements engine.Network. Every layer is an output.
func (n *Network) Metadata() *engine.Metadata {
	m := &engine.Metadata{Name: n.dir}
	for _, l := range n.layers {
		p := engine.Port{Name: l.Name, Type: engine.Float, Shape: []engine.Dim{{Size: -1}}}
		for _, d := range l.Shape {
			p.Shape = append(p.Shape, engine.Dim{Size: d})
		}
		m.Outputs = append(m.Outputs, p)
	}
	return m
}

// Hash returns the SHA-256 of the names and the contents of the files.
func (n *Network) Hash() (string, error) {
	sum := sha256.New()
	err := n.eachFile(func(path string) error {
		f, err := filesys.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(n.dir, path)
		fmt.Fprintf(sum, "%q %d ", filepath.ToSlash(name), info.Size())
		if _, err = io.Copy(sum, f); err != nil {
			return err
		}
		return n.states[path].Check(path)
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Limits implements engine.Network.
func (n *Network) Limits() engine.Limits { return engine.Limits{Workers: runtime.NumCPU()} }

// Layers implements engine.Network. Without Setup.Axes, layers of three axes are taken for NCT,
// those of four for NCHW.
func (n *Network) Layers(_ context.Context, s engine.Setup) (*engine.Layers, error) {
	out := &engine.Layers{All: slices.Clone(n.layers), Outputs: map[string][]int{}, Axes: map[string]tensor.Axes{}}
	for i := range out.All {
		l := &out.All[i]
		if axes, ok := s.Axes[l.Name]; ok {
			if len(axes) != len(l.Shape)+1 {
				return nil, &engine.AxesError{Err: fmt.Errorf("axes %s of %s, which has %d", axes, l.Name, len(l.Shape)+1)}
			}
			l.Axes = axes
		}
		out.Outputs[l.Name], out.Axes[l.Name] = l.Shape, l.Axes
	}
	return out, nil
}

// Open implements engine.Network.
func (n *Network) Open(_ context.Context, r engine.Request) (engine.Session, error) {
	if len(r.Reductions) > 0 {
		return nil, errors.New("recorded activations have no reductions")
	}
	return &session{n, r.Outputs}, nil
}

// Close closes the files.
func (n *Network) Close() error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	var err error
	for _, arrays := range n.views {
		err = errors.Join(err, closeArrays(arrays))
	}
	clear(n.views)
	return err
}

func closeArrays(arrays map[string]array) (err error) {
	for _, a := range arrays {
		err = errors.Join(err, a.Close())
	}
	return err
}

type session struct {
	network *Network
	outputs []engine.Output
}

func (s *session) Inputs() []string { return nil }

func (s *session) Bind(*engine.Array) error { return nil }

func (s *session) Close() error { return nil }

// row returns the row of a sample.
func (n *Network) row(sample int) (int, error) {
	row, ok := n.rows[sample]
	switch {
	case n.rows != nil && !ok:
		return 0, fmt.Errorf("there are activations of %d samples, and none of sample %d (see %s)", n.n, sample, SamplesFile)
	case n.rows != nil:
		return row, nil
	case sample < 0 || sample >= n.n:
		return 0, fmt.Errorf("there are activations of %d samples, and none of sample %d: record a row for each sample of the data, in its order", n.n, sample)
	}
	return sample, nil
}

// Run copies the rows of b.Samples.
func (s *session) Run(ctx context.Context, b engine.Batch) error {
	arrays, err := s.network.view(ctx, b.Samples.View)
	if err != nil {
		return err
	}
	rows := make([]int, len(b.Samples.Index))
	for k, i := range b.Samples.Index {
		if rows[k], err = s.network.row(i); err != nil {
			return err
		}
	}
	if len(b.Samples.Index) == 0 {
		return errors.New("recorded activations are those of the samples of the data: the network cannot run on other inputs")
	}
	for k, o := range s.outputs {
		a, ok := arrays[o.Name]
		if !ok {
			return fmt.Errorf("there are no activations of layer %s for %s", o.Name, b.Samples.View)
		}
		dst := b.Outputs[k].Tensor().Data
		values := make([]float64, len(b.Samples.Index)*tensor.Size(o.Shape))
		if err := a.Rows(rows, values); err != nil {
			return err
		}
		for _, path := range a.files {
			if err := s.network.states[path].Check(path); err != nil {
				return err
			}
		}
		for i, v := range values {
			dst[i] = float32(v)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
