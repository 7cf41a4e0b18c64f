package spec

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/internal/fetch"
	"github.com/noether-ml/noether/onnx"
)

// localPath returns the local path of a file or folder that the study (the description of what is
// measured) names. URLs are downloaded and archives unpacked. If sum is not empty, it is the
// SHA-256 that the file must have. Errors have the position in the study file.
func (s *Study) localPath(ctx context.Context, p Path, sum string) (string, error) {
	path := s.resolve(p.text)
	// Tree downloads and unpacks an archive, File downloads a file. Local checks the sum of a local
	// file and unpacks it if it is an archive.
	if fetch.IsURL(path) {
		return s.withPosition(ctx, p, func() (string, error) {
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
		return "", p.Errorf("%s is a folder: sha256 can be set for a file only", path)
	}
	return s.withPosition(ctx, p, func() (string, error) { return s.cache.Local(ctx, path, sum) })
}

// withPosition calls get, which reads the cache, and adds the position in the study file to its
// error. If the cache could not be opened, it returns that error instead.
func (s *Study) withPosition(ctx context.Context, p Path, get func() (string, error)) (string, error) {
	if s.cacheErr != nil {
		return "", p.Errorf("%v", s.cacheErr)
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

// FindModel returns the local path of a model's file. A URL is downloaded, with its external data
// files. If the study names a folder, FindModel returns the model in it. FindModel does not check
// the SHA-256 of a local file, nor that of a model with external data files: plan.New compares it
// after opening the model.
func (s *Study) FindModel(ctx context.Context, spec Model) (string, error) {
	p := spec.ONNX
	address := s.resolve(p.text)
	if !fetch.IsURL(address) {
		path, err := s.localPath(ctx, p, "")
		if err == nil {
			if path, err = modelIn(path); err != nil {
				err = p.Errorf("%w", err)
			}
		}
		return path, err
	}
	path, err := s.withPosition(ctx, p, func() (string, error) { return s.cache.Model(ctx, address, spec.SHA256, onnx.ListExternal) })
	// Pinned replaces the revision of a model of the Hugging Face hub, such as main, by its commit.
	if pinned := fetch.Pinned(address, path); err == nil && pinned != address {
		s.pin(address, pinned)
	}
	return path, err
}

// pin records that the resolved study (the copy in the run's results, with absolute paths and
// hashes) contains the address pinned, which names a commit, instead of address.
func (s *Study) pin(address, pinned string) {
	if s.pinned == nil {
		s.pinned = map[string]string{}
	}
	s.pinned[address] = pinned
}

// modelIn returns the path of the model in a folder, or the path itself if it is a file.
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
	if !fetch.IsURL(address) {
		return modelIn(address)
	}
	cache, err := fetch.Default()
	if err != nil {
		return "", err
	}
	cache.Log = log
	return cache.Model(ctx, address, "", onnx.ListExternal)
}

// IsURL reports whether a model or data are named by a URL rather than a path.
func IsURL(address string) bool { return fetch.IsURL(address) }

// OpenCache opens the download cache. A missing cache is an error only when it is needed: for URLs,
// archives, and files with a sha256. warn gets a line for each download.
func (s *Study) OpenCache(warn func(string)) {
	if s.cache == nil {
		if s.cache, s.cacheErr = fetch.Default(); s.cacheErr == nil {
			s.cache.Log = warn
		}
	}
}

// absolute returns the absolute form of a path of the study, for a study file in another folder.
// URLs are returned unchanged, but for the revision of a model of the Hugging Face hub (hf://),
// which becomes a commit.
func (s *Study) absolute(path string) string {
	path = s.resolve(path)
	if fetch.IsURL(path) {
		if pinned := s.pinned[path]; pinned != "" {
			return pinned
		}
		return path
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// UseCache sets the download cache, in place of the user's default cache.
func (s *Study) UseCache(c *fetch.Cache) { s.cache = c }
