package spec

import (
	"context"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/internal/fetch"
	"github.com/noether-ml/noether/onnx"
)

// find is a path as it can be opened: what a URL names is fetched, and an archive is the folder
// with what it holds. sum is the SHA-256 that the file must have, or "". Errors have the place in
// the study file.
func (s *Study) find(ctx context.Context, p Path, sum string) (string, error) {
	path := s.resolve(p.text)
	if fetch.IsURL(path) {
		return s.fetched(ctx, p, func() (string, error) {
			if fetch.IsArchive(path) {
				return s.cache.Tree(ctx, path, sum)
			}
			return s.cache.File(ctx, path, sum)
		})
	}
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return "", p.Errorf("no such file or folder: %s", path)
	case err != nil:
		return "", p.Errorf("%v", err)
	case sum == "" && (info.IsDir() || !fetch.IsArchive(path)):
		return path, nil
	case info.IsDir():
		return "", p.Errorf("%s is a folder, and sha256 is of a file", path)
	}
	return s.fetched(ctx, p, func() (string, error) { return s.cache.Local(ctx, path, sum) })
}

// fetched runs what fetches, with the place in the study file in its errors.
func (s *Study) fetched(ctx context.Context, p Path, get func() (string, error)) (string, error) {
	if s.noCache != nil {
		return "", p.Errorf("%v", s.noCache)
	}
	path, err := get()
	switch {
	case err == nil:
		return path, nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	}
	return "", p.Errorf("%v", err)
}

// FindModel is the path of a model's file. Of one at a URL the files with its weights are fetched
// as well; its hash is checked where it is opened.
func (s *Study) FindModel(ctx context.Context, spec Model) (string, error) {
	p := spec.ONNX
	address := s.resolve(p.text)
	if !fetch.IsURL(address) {
		return s.find(ctx, p, "")
	}
	return s.fetched(ctx, p, func() (string, error) { return s.cache.Model(ctx, address, spec.SHA256, onnx.ListExternal) })
}

// OpenCache makes ready to fetch what the study names by URL. A machine without a place for a cache
// is good enough for studies that name none.
func (s *Study) OpenCache(warn func(string)) {
	if s.cache == nil {
		if s.cache, s.noCache = fetch.Default(); s.noCache == nil {
			s.cache.Log = warn
		}
	}
}

// absolute is a path of the study for a study file in any other place.
func (s *Study) absolute(path string) string {
	path = s.resolve(path)
	if fetch.IsURL(path) {
		return path
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// UseCache sets where what the study names by URL is kept; without it that is the user's cache.
func (s *Study) UseCache(c *fetch.Cache) { s.cache = c }
