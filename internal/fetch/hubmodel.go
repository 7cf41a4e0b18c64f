package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/fetch/uri"
)

// hubConfigs are the files that describe a model. They are optional.
var hubConfigs = []string{"preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json", "config.json"}

// configs returns the paths at which the files that describe a model may be: in its folder and, if
// that is called onnx, in the parent folder.
func configs(model string) []string {
	dirs := []string{path.Dir(model)}
	if path.Base(dirs[0]) == "onnx" {
		dirs = append(dirs, path.Dir(dirs[0]))
	}
	var out []string
	for _, dir := range dirs {
		for _, name := range hubConfigs {
			out = append(out, path.Join(dir, name))
		}
	}
	return out
}

// hubModel returns the path of a model's file in the cache of the Hugging Face hub. It downloads
// what the cache lacks: the file, the external files with its weights, which the function external
// lists, and the files that describe it. An address whose revision is a commit never changes, so
// nothing is asked of the hub if the cache has all. If the hub is offline, the first two must be in
// the cache.
func (c *Cache) hubModel(ctx context.Context, address string, external func(file string) ([]string, error)) (string, error) {
	a, err := uri.ParseHub(address)
	if err == nil && a.Kind != uri.Models {
		err = fmt.Errorf("%s is a data set, not a model", a)
	}
	if err != nil {
		return "", err
	}
	h, err := c.hub()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout(), fmt.Errorf("the download took longer than %v", c.timeout()))
	defer cancel()
	stored, known := h.stored(a) // the cached files of the commit that the revision last stood for
	if known && uri.Commit.MatchString(a.Revision) || h.Offline {
		if file, err := stored.complete(external); err == nil {
			return file, nil
		} else if h.Offline {
			return "", fmt.Errorf("%s: %w; HF_HUB_OFFLINE is set, and %s lacks it", a, err, h.Dir)
		}
	}
	file, err := c.downloadModel(ctx, h, a, external)
	if err == nil {
		return file, nil
	}
	if known && !isPermanent(err) && ctx.Err() == nil {
		if file, absent := stored.complete(external); absent == nil {
			c.log("%s cannot be reached (%v): using the copy of commit %.7s; HF_HUB_OFFLINE=1 skips the attempt", a, err, stored.commit)
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: %w", a, h.explain(a, err))
}

// complete returns the path of the model's file if the cache has all of the model: the file, the
// external files, which the function external lists, and each file that describes it, or the mark
// that the repository has no such file. If the hub is offline, the files that describe it may be
// missing.
func (s *snapshot) complete(external func(string) ([]string, error)) (string, error) {
	if len(s.files) == 0 {
		return "", fmt.Errorf("no file of revision %s is known", s.address.Revision)
	}
	name, err := chooseModel(s.files, s.address.File)
	if err != nil {
		return "", err
	}
	weights, err := external(s.path(name))
	if err != nil {
		return "", err
	}
	for _, w := range weights {
		if !s.has(path.Join(path.Dir(name), w)) {
			return "", fmt.Errorf("the file %s of weights is missing", path.Join(path.Dir(name), w))
		}
	}
	if s.hub.Offline {
		return s.path(name), nil
	}
	for _, config := range configs(name) {
		if _, err := os.Stat(s.absenceMark(config)); !s.has(config) && err != nil {
			return "", fmt.Errorf("it is not known whether there is a file %s", config)
		}
	}
	return s.path(name), nil
}

// downloadModel asks the hub for the commit, downloads the files of the model that the cache lacks,
// and returns the path of its file. c.hubFile downloads one file unless the cache has it. A
// permanent error is one that a retry would not change.
func (c *Cache) downloadModel(ctx context.Context, h *Hub, a uri.Hub, external func(string) ([]string, error)) (string, error) {
	s, err := c.askCommit(ctx, h, a)
	if err != nil {
		return "", err
	}
	name, err := chooseModel(s.files, a.File)
	if err != nil {
		return "", &permanent{err}
	}
	for _, config := range configs(name) {
		if slices.Contains(s.files, config) {
			err = c.hubFile(ctx, s, config)
		} else if os.MkdirAll(filepath.Dir(s.absenceMark(config)), 0o777) == nil {
			os.WriteFile(s.absenceMark(config), nil, 0o666) // saves a request next time
		}
		if err != nil {
			return "", err
		}
	}
	if err := c.hubFile(ctx, s, name); err != nil {
		return "", err
	}
	weights, err := external(s.path(name))
	if err != nil {
		return "", &permanent{err}
	}
	for _, w := range weights {
		w = path.Join(path.Dir(name), w)
		if !slices.Contains(s.files, w) {
			return "", &permanent{fmt.Errorf("%s keeps weights in %s, which the repository lacks", name, w)}
		}
		if err := c.hubFile(ctx, s, w); err != nil {
			return "", err
		}
	}
	return s.path(name), nil
}

// ModelIn returns the path of the model in a folder that is laid out as a repository of the hub:
// onnx/model.onnx, else model.onnx, else the only .onnx file in the folder and its subfolder onnx.
// It is an error if there is none, or if there are several and none has such a name.
func ModelIn(dir string) (string, error) {
	name, err := chooseModel(filesIn(dir, "", "onnx"), "")
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	return filepath.Join(dir, filepath.FromSlash(name)), nil
}

func filesIn(dir string, subs ...string) []string {
	var out []string
	for _, sub := range subs {
		entries, _ := os.ReadDir(filepath.Join(dir, sub)) // a folder that cannot be read has no model
		for _, e := range entries {
			if info, err := os.Stat(filepath.Join(dir, sub, e.Name())); err == nil && info.Mode().IsRegular() {
				out = append(out, path.Join(sub, e.Name()))
			}
		}
	}
	return out
}

// chooseModel returns the model's file among the files of a repository. wanted is that file, or a
// folder of the repository, or "" for the whole repository. In a folder the model is
// onnx/model.onnx, else model.onnx, else the only file whose name ends in .onnx. It is an error if
// there is no such file, or more than one.
func chooseModel(files []string, wanted string) (string, error) {
	var models []string
	for _, f := range files {
		if path.Ext(f) == ".onnx" {
			models = append(models, f)
		}
	}
	slices.Sort(models)
	models = slices.Compact(models)
	if path.Ext(wanted) == ".onnx" {
		if !slices.Contains(models, wanted) {
			return "", fmt.Errorf("there is no file %s%s", wanted, listed("; there are ", models))
		}
		return wanted, nil
	}
	below := slices.DeleteFunc(slices.Clone(models), func(f string) bool { return wanted != "" && !strings.HasPrefix(f, wanted+"/") })
	for _, name := range []string{"onnx/model.onnx", "model.onnx"} {
		if name = path.Join(wanted, name); slices.Contains(below, name) {
			return name, nil
		}
	}
	switch {
	case len(below) == 1:
		return below[0], nil
	case len(below) > 1:
		return "", fmt.Errorf("there are several models%s: add /FILE to the address", listed(", ", below))
	case wanted != "":
		return "", fmt.Errorf("there is no .onnx file in a folder %s%s", wanted, listed("; there are ", models))
	}
	return "", errors.New("there is no .onnx file: export the model to ONNX first")
}

// listed joins the first few names, after an introduction, or returns "" if there are none.
func listed(intro string, names []string) string {
	const shown = 8
	if len(names) == 0 {
		return ""
	}
	text := intro + strings.Join(names[:min(len(names), shown)], ", ")
	if len(names) > shown {
		text += fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return text
}
