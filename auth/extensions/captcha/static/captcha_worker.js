// Finds the counter whose derived key begins with the prefix of a challenge (ALTCHA v2, PBKDF2).
const bytesOf = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));
const hexOf = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");

onmessage = async ({ data: { cost, keyLength, keyPrefix, nonce, salt } }) => {
  const password = new Uint8Array([...bytesOf(nonce), 0, 0, 0, 0]);
  const last = new DataView(password.buffer, password.length - 4);
  const derivation = { name: "PBKDF2", hash: "SHA-256", salt: bytesOf(salt), iterations: cost };
  for (let counter = 0; ; counter++) {
    last.setUint32(0, counter);
    const key = await crypto.subtle.importKey("raw", password, "PBKDF2", false, ["deriveBits"]);
    const derivedKey = hexOf(await crypto.subtle.deriveBits(derivation, key, keyLength * 8));
    if (derivedKey.startsWith(keyPrefix)) return postMessage({ counter, derivedKey });
  }
};
