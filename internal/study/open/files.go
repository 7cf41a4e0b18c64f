package open

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/noether-ml/noether/internal/fetch"
	"github.com/noether-ml/noether/internal/fetch/uri"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/onnx"
)

// Files finds the files that a study names. URLs are downloaded and archives unpacked.
type Files struct {
	folder string // relative paths start here
	seed   uint64 // of the study, for the selection of samples
	pin    func(address, pinned string)

	openCache sync.Once
	cache     *fetch.Cache
	cacheErr  error // why the cache cannot be opened; an error only when it is needed
	log       func(string)
}

// Options are the settings of New.
type Options struct {
	Cache *fetch.Cache // nil: the user's cache
	Log   func(string) // gets a line for each download into the user's cache; may be nil
}

// New returns the files of a study. It records in the study which commits of the Hugging Face hub
// were read.
func New(s *spec.Study, o Options) *Files {
	return &Files{folder: s.Resolve(""), seed: s.Seed, pin: s.Pin, cache: o.Cache, log: o.Log}
}

// In returns the files that another file, such as a training file, names relative to a folder.
func In(folder string, seed uint64) *Files { return &Files{folder: folder, seed: seed} }

func withCache[T any](f *Files, get func(*fetch.Cache) (T, error)) (T, error) {
	f.openCache.Do(func() {
		if f.cache == nil {
			if f.cache, f.cacheErr = fetch.Default(); f.cacheErr == nil {
				f.cache.Log = f.log
			}
		}
	})
	if f.cacheErr != nil {
		var none T
		return none, f.cacheErr
	}
	return get(f.cache)
}

// local returns the local path of a file or folder. sum is its SHA-256, or "". Errors have the
// position in the study file.
func (f *Files) local(ctx context.Context, p spec.Path, sum string) (string, error) {
	found, err := f.find(ctx, spec.Resolve(f.folder, p.String()), sum)
	return found, positioned(ctx, p, err)
}

func (f *Files) find(ctx context.Context, path, sum string) (string, error) {
	if uri.IsURL(path) {
		return withCache(f, func(c *fetch.Cache) (string, error) {
			if fetch.IsArchive(path) {
				return c.Tree(ctx, path, sum)
			}
			return c.File(ctx, path, sum)
		})
	}
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return "", missingError(path)
	case err != nil:
		return "", err
	case sum == "" && (info.IsDir() || !fetch.IsArchive(path)):
		return path, nil
	case info.IsDir():
		return "", fmt.Errorf("%s is a folder: sha256 can be set for a file only", path)
	}
	return withCache(f, func(c *fetch.Cache) (string, error) { return c.Local(ctx, path, sum) })
}

// A missingError is the path of a file or folder that does not exist.
type missingError string

func (p missingError) Error() string      { return "no such file or folder: " + string(p) }
func (missingError) Is(target error) bool { return target == fs.ErrNotExist }

func positioned(ctx context.Context, p spec.Path, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return p.Errorf("%w", err)
}

// findAll returns the local paths of required files, then those of optional ones: "" for nil.
func (f *Files) findAll(ctx context.Context, d spec.Data, paths []spec.Path, optional ...*spec.Path) ([]string, error) {
	if d.SHA256 != "" && len(paths) != 1 {
		return nil, d.At("sha256").Errorf("sha256 is for one file, and this entry names %d: append #sha256=... to each URL", len(paths))
	}
	var out []string
	for _, p := range paths {
		found, err := f.local(ctx, p, d.SHA256)
		if err != nil {
			return nil, err
		}
		out = append(out, found)
	}
	for _, p := range optional {
		found := ""
		if p != nil {
			var err error
			if found, err = f.local(ctx, *p, ""); err != nil {
				return nil, err
			}
		}
		out = append(out, found)
	}
	return out, nil
}

// Model returns the local path of a model's file; URLs are downloaded, with external data files.
// For a model that is no file it returns the address. The SHA-256 of a local file, and of a model
// with external data, is compared later, by the plan.
func (f *Files) Model(ctx context.Context, m spec.Model) (string, error) {
	switch {
	case m.Activations.String() != "":
		return f.local(ctx, m.Activations, "")
	case m.URL != "":
		return m.URL, nil
	case m.Python != "":
		return m.Python, nil
	}
	address := spec.Resolve(f.folder, m.ONNX.String())
	if !uri.IsURL(address) {
		path, err := f.find(ctx, address, "")
		if err == nil {
			path, err = modelIn(path)
		}
		return path, positioned(ctx, m.ONNX, err)
	}
	path, err := withCache(f, func(c *fetch.Cache) (string, error) { return c.Model(ctx, address, m.SHA256, onnx.ListExternal) })
	if err != nil {
		return "", positioned(ctx, m.ONNX, err)
	}
	f.pinned(address, path)
	return path, nil
}

// pinned records the commit of an address of the Hugging Face hub, given a file that was read.
func (f *Files) pinned(address, file string) {
	if pinned := uri.Pinned(address, file); f.pin != nil && pinned != address {
		f.pin(address, pinned)
	}
}

func modelIn(path string) (string, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return path, nil // a missing file is an error when it is opened
	}
	file, err := fetch.ModelIn(path)
	// In a folder of another framework, such as TensorFlow's, the error says how to export to ONNX.
	if foreign := onnx.Foreign(path); err != nil && foreign != nil {
		err = fmt.Errorf("%s: %w", path, foreign)
	}
	return file, err
}

// ModelFile returns the local path of the model that a command names: a file, a folder with one, or
// a URL, which is downloaded into the user's cache.
func ModelFile(ctx context.Context, address string, log func(string)) (string, error) {
	if !uri.IsURL(address) {
		return modelIn(address)
	}
	cache, err := fetch.Default()
	if err != nil {
		return "", err
	}
	cache.Log = log
	return cache.Model(ctx, address, "", onnx.ListExternal)
}
