package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/fetch/uri"
)

// DataFiles downloads the files of a data set of the Hugging Face hub that have an extension, such
// as .parquet, and returns their paths in the hub's cache, sorted. The address is
// hf://datasets/ORG/NAME[@REVISION][/FILE], where FILE is a file, a folder, or a pattern such as
// data/test-*.parquet; without a FILE, all files are meant. Files of more than one split, such as
// train and test, are an error unless FILE is a pattern, and so is an incomplete set of numbered
// files.
func (c *Cache) DataFiles(ctx context.Context, address, extension string) ([]string, error) {
	a, err := uri.ParseHub(address)
	if err == nil && a.Kind != uri.DataSets {
		err = fmt.Errorf("%s is a model, not a data set: write %s", a, uri.DataSetUsage)
	}
	if err != nil {
		return nil, err
	}
	h, err := c.hub()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout(), fmt.Errorf("the download took longer than %v", c.timeout()))
	defer cancel()
	s, known := h.storedData(a)
	if !h.Offline {
		current, err := c.askCommit(ctx, h, a)
		switch {
		case err == nil:
			s = current
		case !known || isPermanent(err) || ctx.Err() != nil:
			return nil, fmt.Errorf("%s: %w", a, h.explain(a, err))
		default:
			c.log("%s cannot be reached (%v): using the files of commit %.7s that are stored", a, err, s.commit)
		}
	}
	names, err := chooseData(s.files, a, extension)
	if err != nil && h.Offline {
		err = fmt.Errorf("%w; HF_HUB_OFFLINE is set, and %s has no other files of it", err, h.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a, err)
	}
	var out []string
	for _, name := range names {
		if err := c.hubFile(ctx, s, name); err != nil {
			return nil, fmt.Errorf("%s: %w", a, h.explain(a, err))
		}
		out = append(out, s.path(name))
	}
	return out, nil
}

// storedData returns the snapshot of a data set that the hub's cache has, with those of its files
// that are stored, and reports whether there are any.
func (h *Hub) storedData(a uri.Hub) (*snapshot, bool) {
	s, _ := h.stored(a)
	s.files = nil
	if !uri.Commit.MatchString(s.commit) {
		return s, false
	}
	root := s.path(".")
	filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if name, err := filepath.Rel(root, p); err == nil && s.has(filepath.ToSlash(name)) {
				s.files = append(s.files, filepath.ToSlash(name))
			}
		}
		return nil // a folder that cannot be read has no files
	})
	return s, len(s.files) > 0
}

// chooseData returns the files of a data set that an address names, sorted.
func chooseData(files []string, a uri.Hub, extension string) ([]string, error) {
	var names, all []string
	splits := map[string]bool{}
	for _, f := range files {
		if path.Ext(f) != extension {
			continue
		}
		all = append(all, f)
		matched, err := path.Match(a.File, f)
		if err != nil {
			return nil, fmt.Errorf("%q is not a pattern of file names", a.File)
		}
		if matched || a.File == "" || strings.HasPrefix(f, a.File+"/") {
			names = append(names, f)
			splits[splitPattern(f)] = true
		}
	}
	slices.Sort(names)
	slices.Sort(all)
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("there is no file with the extension %s; the hub converts many data sets to Parquet under the revision refs%%2Fconvert%%2Fparquet", extension)
	case len(names) == 0:
		return nil, fmt.Errorf("no file %s%s", a.File, listed("; there are ", all))
	case len(splits) > 1 && !strings.ContainsAny(a.File, "*?["):
		var patterns []string
		for p := range splits {
			patterns = append(patterns, p)
		}
		slices.Sort(patterns)
		return nil, errors.New("there are several splits" + listed(": ", patterns) + "; add one to the address")
	}
	match := numberedShard.FindStringSubmatch(strings.TrimSuffix(names[0], extension))
	if match == nil || match[2] == "" || a.File == names[0] || strings.ContainsAny(a.File, "*?[") {
		return names, nil
	}
	if total, err := strconv.Atoi(match[2]); err != nil || total != len(names) {
		return nil, fmt.Errorf("%d of %s files of %s are there", len(names), match[2], splitPattern(names[0]))
	}
	return names, nil
}

// numberedShard matches the name of a numbered file without its extension, such as
// test-00000-of-00002, and captures the part before the number and the total.
var numberedShard = regexp.MustCompile(`^(.*?)-\d+(?:-of-(\d+))?$`)

// splitPattern returns a pattern for the files of the split of a file: those with the same name
// except for the number or, if it has no number, those in the same folder.
func splitPattern(file string) string {
	extension := path.Ext(file)
	if match := numberedShard.FindStringSubmatch(strings.TrimSuffix(file, extension)); match != nil {
		return match[1] + "-*" + extension
	}
	return path.Join(path.Dir(file), "*"+extension)
}
