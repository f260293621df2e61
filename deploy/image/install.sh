#!/bin/sh
# install.sh EXTRA...: into /site what uv.lock says of these extras, without what runs nothing.
set -eu
extras=""
for extra in "$@"; do extras="$extras --extra $extra"; done
# shellcheck disable=SC2086 # one word an option
uv export -q --frozen --no-dev --no-emit-project $extras > requirements.txt
uv pip install -q --require-hashes --no-deps --target /site -r requirements.txt
cd /site
rm -rf bin include share pyarrow/include pyarrow/src pyarrow/libarrow_flight* pyarrow/libarrow_python_flight* \
  pyarrow/_flight*
find . -depth \( -name tests -o -name __pycache__ \) -exec rm -rf {} +
find . -type f \( -name '*.pyi' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name '*.hpp' -o -name '*.a' \) -delete
find . -type f -name '*.so*' -not -path '*.libs/*' -exec strip --strip-unneeded {} +
