//! The service under test and its messages. tests/system/interop/test_clients.py sets the environment.
use serde_json::Value;
use std::{env, time::Duration};
use supabase_auth::models::AuthClient;
use uuid::Uuid;

pub const PASSWORD: &str = "Correct-Horse-1";

pub fn service() -> String {
    env::var("LATCHKEY_URL").unwrap()
}

pub fn service_key() -> String {
    env::var("LATCHKEY_SERVICE_KEY").unwrap()
}

pub fn client() -> AuthClient {
    AuthClient::new(service(), "an-anon-key-that-is-ignored", "")
}

pub fn new_email() -> String {
    format!("{}@example.com", Uuid::new_v4())
}

/// The newest message to an address, when `number` messages have been sent.
pub async fn newest(to: &str, number: usize) -> Value {
    for _ in 0..300 {
        let found: Value = reqwest::Client::new()
            .get(format!("{}/dev/inbox", service()))
            .query(&[("recipient", to)])
            .bearer_auth(service_key())
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        if found.as_array().unwrap().len() >= number {
            return found[0].clone();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no message to {to}");
}

pub async fn newest_code(to: &str, number: usize) -> String {
    newest(to, number).await["code"].as_str().unwrap().to_owned()
}
