// Package uri tells URLs from paths, and parses the addresses of the Hugging Face hub. It opens
// no connection.
package uri

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// A Hub is a parsed address of the Hugging Face hub: hf://ORG/NAME[@REVISION][/FILE] for a
// model, hf://datasets/ORG/NAME[@REVISION][/FILE] for a data set.
type Hub struct {
	Kind       string // Models or DataSets
	Repository string // ORG/NAME
	Revision   string // a branch, a tag or a commit; main if the address names none
	File       string // a file, a folder, or a pattern of a data set's files; "": none is named
}

// The kinds of repositories.
const (
	Models   = "models"
	DataSets = "datasets"
)

// DataSetUsage is the form of the address of a data set.
const DataSetUsage = "hf://datasets/ORGANISATION/NAME, with @REVISION and /FILE where needed"

const (
	hubScheme   = "hf://"
	hubDataSets = hubScheme + DataSets + "/"
)

var scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+)://`)

// IsURL reports whether text is a URL rather than a path.
func IsURL(text string) bool { return scheme.MatchString(text) }

// Redact returns a URL without its secrets: user, password, and the query, which may hold a
// signature.
func Redact(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		before, _, _ := strings.Cut(text, "?")
		return before
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// IsHub reports whether an address is one of the Hugging Face hub.
func IsHub(address string) bool { return strings.HasPrefix(address, hubScheme) }

// IsHubData reports whether an address is one of a data set of the hub.
func IsHubData(address string) bool { return strings.HasPrefix(address, hubDataSets) }

var hubPattern = regexp.MustCompile(`^hf://([A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_][A-Za-z0-9_.-]*)(?:@(refs/(?:pr|convert)/[^/]+|[^/]+))?(?:/(.*))?$`)

// Commit matches the commit of a repository.
var Commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// ParseHub parses an address of the hub; any other is an error. A slash in a revision is written as
// %2F, except in refs/pr/N and refs/convert/NAME.
func ParseHub(text string) (Hub, error) {
	kind, bare, usage := Models, text, "no model: write hf://ORGANISATION/NAME, with @REVISION and /FILE where needed"
	if rest, ok := strings.CutPrefix(text, hubDataSets); ok {
		kind, bare, usage = DataSets, hubScheme+rest, "no data set: write "+DataSetUsage
	}
	match := hubPattern.FindStringSubmatch(bare)
	if match == nil || strings.Contains(match[1], "--") || strings.Contains(match[1], "..") {
		return Hub{}, fmt.Errorf("%q names %s", text, usage)
	}
	revision, err := url.PathUnescape(cmp.Or(match[2], "main"))
	if err != nil || !IsLocalSlash(revision) {
		return Hub{}, fmt.Errorf("%s: %q is not a revision", text, match[2])
	}
	file := strings.TrimSuffix(match[3], "/")
	if file != "" && (!IsLocalSlash(file) || path.Clean(file) != file) {
		return Hub{}, fmt.Errorf("%s: %q is not a file of a repository", text, file)
	}
	return Hub{kind, match[1], revision, file}, nil
}

// IsLocalSlash reports whether a relative path with slashes stays within its folder, and has no
// backslash, colon or zero byte.
func IsLocalSlash(name string) bool {
	return filepath.IsLocal(filepath.FromSlash(name)) && !strings.ContainsAny(name, "\\\x00:")
}

func (a Hub) String() string {
	text := hubScheme + a.Repository
	if a.Kind == DataSets {
		text = hubDataSets + a.Repository
	}
	if a.Revision != "main" {
		text += "@" + a.Revision
	}
	if a.File != "" {
		text += "/" + a.File
	}
	return text
}

// HubName returns the name of the repository of an address of the hub, without its organisation.
// For an address that is not valid it returns the address without hf://.
func HubName(address string) string {
	a, err := ParseHub(address)
	if err != nil {
		return strings.TrimPrefix(address, hubScheme)
	}
	return path.Base(a.Repository)
}

// Pinned returns an address of the hub with the commit in place of the revision. file is the path
// of a downloaded file, as Model or DataFiles returned it for the address:
// FOLDER/snapshots/COMMIT/FILE in the hub's cache. Other addresses, and those for which file has no
// commit, are returned as they are.
func Pinned(address, file string) string {
	a, err := ParseHub(address)
	if !IsHub(address) || err != nil {
		return address
	}
	_, rest, _ := strings.Cut(filepath.ToSlash(file), "/"+a.Folder()+"/snapshots/")
	commit, _, _ := strings.Cut(rest, "/")
	if !Commit.MatchString(commit) {
		return address
	}
	a.Revision = commit
	return a.String()
}

// SameModel reports whether two addresses are equal, or are those of a model of the hub and differ
// in the revision only.
func SameModel(a, b string) bool {
	if a == b {
		return true
	}
	x, err1 := ParseHub(a)
	y, err2 := ParseHub(b)
	x.Revision = y.Revision
	return err1 == nil && err2 == nil && x.Kind == Models && x == y
}

// folder returns the name of the repository's folder in the hub's cache.
func (a Hub) Folder() string {
	return a.Kind + "--" + strings.ReplaceAll(a.Repository, "/", "--")
}

// page returns the path of the repository at the hub.
func (a Hub) Page() string {
	if a.Kind == DataSets {
		return DataSets + "/" + a.Repository
	}
	return a.Repository
}
