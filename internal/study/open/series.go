package open

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/fetch"
	"github.com/noether-ml/noether/internal/fetch/uri"
	"github.com/noether-ml/noether/internal/study/spec"
)

// maxSeries is the largest number of files that one entry of data may name.
const maxSeries = 100_000

// findSeries returns the local paths of a series. Each of paths may be a file, a range
// (val-{000..049}.tar), a pattern, a URL or a range of URLs, a data set of the Hugging Face hub, or
// a folder.
func (f *Files) findSeries(ctx context.Context, d spec.Data, paths []spec.Path, extension string) ([]string, error) {
	if d.SHA256 != "" {
		return nil, d.At("sha256").Errorf("sha256 cannot be set for a series of files: append #sha256=... to each URL, or set fingerprint, the hash of the samples")
	}
	var out []string
	for _, p := range paths {
		names, err := expandRanges(p.String())
		if err != nil {
			return nil, p.Errorf("%w", err)
		}
		for _, name := range names {
			found, err := f.findFiles(ctx, spec.Resolve(f.folder, name), extension)
			if err != nil {
				return nil, positioned(ctx, p, err)
			}
			if out = append(out, found...); len(out) > maxSeries {
				return nil, p.Errorf("there are more than %d files", maxSeries)
			}
		}
	}
	return out, nil
}

// findFiles returns, sorted by name, the files that a path names: a file, pattern, URL, hub data
// set or folder. Archives are not unpacked.
func (f *Files) findFiles(ctx context.Context, path, extension string) ([]string, error) {
	switch {
	case uri.IsHubData(path):
		files, err := withCache(f, func(c *fetch.Cache) ([]string, error) { return c.DataFiles(ctx, path, extension) })
		if err == nil {
			f.pinned(path, files[0])
		}
		return files, err
	case uri.IsURL(path):
		file, err := withCache(f, func(c *fetch.Cache) (string, error) { return c.File(ctx, path, "") })
		return []string{file}, err
	}
	pattern, none := path, error(missingError(path))
	switch info, err := os.Stat(path); {
	case err == nil && !info.IsDir():
		return []string{path}, nil
	case err == nil:
		pattern, none = filepath.Join(escapePattern(path), "*"+extension), fmt.Errorf("no file in %s ends in %s", path, extension)
	case !os.IsNotExist(err):
		return nil, err
	}
	found, err := filepath.Glob(pattern)
	if err == nil && len(found) == 0 {
		err = none
	}
	return found, err
}

// escapePattern returns a glob pattern that matches the path alone.
func escapePattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// expandRanges expands braces as a shell does: {000..049}, {train,val}.
func expandRanges(name string) ([]string, error) {
	before, rest, found := strings.Cut(name, "{")
	if !found {
		return []string{name}, nil
	}
	inner, after, found := strings.Cut(rest, "}")
	if !found {
		return nil, fmt.Errorf("%q has no closing brace", name)
	}
	parts := strings.Split(inner, ",")
	if low, high, ok := strings.Cut(inner, ".."); ok && len(parts) == 1 {
		var err error
		if parts, err = numbersBetween(low, high); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
	}
	tails, err := expandRanges(after)
	if err != nil {
		return nil, err
	}
	if len(parts)*len(tails) > maxSeries {
		return nil, fmt.Errorf("%q names more than %d files", name, maxSeries)
	}
	var out []string
	for _, part := range parts {
		for _, tail := range tails {
			out = append(out, before+part+tail)
		}
	}
	return out, nil
}

// numbersBetween keeps at least as many digits as low has.
func numbersBetween(low, high string) ([]string, error) {
	a, errA := strconv.ParseUint(low, 10, 31)
	b, errB := strconv.ParseUint(high, 10, 31)
	switch {
	case errA != nil || errB != nil || a > b:
		return nil, fmt.Errorf("{%s..%s} is not a range of numbers such as {000..049}", low, high)
	case b-a >= maxSeries:
		return nil, fmt.Errorf("{%s..%s} names more than %d files", low, high, maxSeries)
	}
	var out []string
	for n := a; n <= b; n++ {
		out = append(out, fmt.Sprintf("%0*d", len(low), n))
	}
	return out, nil
}
