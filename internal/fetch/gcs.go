package fetch

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

const (
	gcsHost  = "https://storage.googleapis.com"
	gcsScope = "https://www.googleapis.com/auth/devstorage.read_only"
)

// openGCS opens gs://BUCKET/OBJECT by the XML interface of Google Cloud Storage. A request carries
// a token of the application default credentials. Without credentials, or with ?anonymous=true, the
// object has to be public. r selects the bytes. An error of type permanent is one that a retry
// would not change. c.GCS, if set, is the address of another server than gcsHost.
func (c *Cache) openGCS(ctx context.Context, u *url.URL, r request) (*body, error) {
	object, err := url.Parse(cmp.Or(c.GCS, gcsHost))
	if err != nil {
		return nil, &permanent{err}
	}
	object = object.JoinPath(u.Host, u.Path)
	if u.Query().Get("anonymous") == "true" {
		return c.openHTTP(ctx, object, nil, r)
	}
	credentials, err := google.FindDefaultCredentials(context.WithValue(ctx, oauth2.HTTPClient, c.client()), gcsScope)
	if err != nil && os.Getenv("GOOGLE_APPLICATION_CREDENTIALS") != "" {
		return nil, &permanent{err}
	}
	if err != nil { // a public object needs no credentials
		b, err := c.openHTTP(ctx, object, nil, r)
		if isPermanent(err) {
			err = &permanent{fmt.Errorf("%w (no Google credentials: run gcloud auth application-default login)", err)}
		}
		return b, err
	}
	token, err := credentials.TokenSource.Token()
	if err != nil {
		return nil, err
	}
	req := &http.Request{Header: http.Header{}}
	token.SetAuthHeader(req)
	return c.openHTTP(ctx, object, req.Header, r)
}
