package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/noether-ml/noether/internal/fetch/uri"
)

// Model returns the path of a model's file in the cache, with its external weight files in the same
// folder. These are downloaded from the folder of the model's URL; external lists them, given the
// model's file. sum is the SHA-256 of the model's file if it has no external files. Otherwise sum
// covers all files and is verified when the model is opened, as for models of hf:// (the Hugging
// Face hub).
func (c *Cache) Model(ctx context.Context, address, sum string, external func(file string) ([]string, error)) (string, error) {
	if uri.IsHub(address) {
		return c.hubModel(ctx, address, external)
	}
	t, err := parse(address, sum)
	if err != nil {
		return "", err
	}
	if t.sha256 != "" && c.has(t.sha256) {
		if file, err := c.namedPath(t.sha256, t.name); err != nil || len(listExternal(external, file)) == 0 {
			return file, err
		}
	}
	unverified := t // sum may cover the external files, too
	unverified.sha256 = ""
	main, err := c.content(ctx, unverified)
	if err != nil {
		return "", fmt.Errorf("%s: %w", t.text, err)
	}
	file, err := c.namedPath(main, t.name)
	if err != nil {
		return "", err
	}
	names, err := external(file)
	if err != nil && t.sha256 != "" && main != t.sha256 {
		err = otherHash(main, t.sha256) // external fails for a file that is not a model
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", t.text, err)
	}
	if len(names) == 0 {
		if t.sha256 != "" && main != t.sha256 {
			return "", fmt.Errorf("%s: %w", t.text, otherHash(main, t.sha256))
		}
		return file, nil
	}
	return c.bundle(ctx, t, main, names)
}

func otherHash(actual, expected string) error {
	return fmt.Errorf("has the SHA-256 %s, not %s: it is a different file, or damaged", actual, expected)
}

func listExternal(external func(string) ([]string, error), file string) []string {
	names, err := external(file)
	if err != nil {
		return nil // the error appears when the model is opened
	}
	return names
}

// bundlePrefix is how the names of the folders of bundle start.
const bundlePrefix = "with-"

// bundle makes a folder with a model, whose content has the hash main, and its external files under
// the names that the model has for them. It returns the path of the model's file.
func (c *Cache) bundle(ctx context.Context, t target, main string, names []string) (string, error) {
	files := map[string]string{t.name: main}
	about := sha256.New() // hash of the hashes and names of the external files
	for _, name := range names {
		if !filepath.IsLocal(filepath.FromSlash(name)) || strings.Contains(name, "\\") || name == t.name {
			return "", fmt.Errorf("%s keeps weights in %q, outside its folder", t.text, name)
		}
		u := *t.url
		u.Path = path.Join(path.Dir(u.Path), name)
		u.RawPath = ""
		weights := target{url: &u, text: uri.Redact(u.String()), name: path.Base(name)}
		sum, err := c.content(ctx, weights)
		if err != nil {
			return "", fmt.Errorf("%s: %w", weights.text, err)
		}
		files[name] = sum
		fmt.Fprintf(about, "%s %s\n", sum, name)
	}
	dir := c.path("content", main, bundlePrefix+hex.EncodeToString(about.Sum(nil)[:8]))
	for name, sum := range files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return "", err
		}
		if err := c.provide(sum, to); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, t.name), nil
}
